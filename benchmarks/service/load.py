"""Requests as fast as a server answers them: wrk where it is installed, else sockets of our own."""

from __future__ import annotations

import asyncio
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field

CONNECTIONS = 16


@dataclass(frozen=True, slots=True)
class Target:
    """What is asked for: `{time}` in the path and `range_bytes` vary from request to request."""

    url: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 0
    range_bytes: int = 0
    size: int = 0
    status: int = 200


@dataclass(frozen=True, slots=True)
class Told:
    """What came of it."""

    per_second: float
    requests: int
    wrong: int
    who: str


LUA = """
local path, times, part, slots = %s, %d, %d, %d
math.randomseed(7)
request = function()
  local asked = path
  if times > 0 then asked = string.gsub(path, "{time}", math.random(0, times - 1)) end
  if part > 0 then
    local at = math.random(0, slots - 1) * part
    wrk.headers["Range"] = "bytes=" .. at .. "-" .. (at + part - 1)
  end
  return wrk.format(nil, asked)
end
"""


def ask(target: Target, seconds: float, connections: int = CONNECTIONS) -> Told:
    """Load a server for so long; in a process of its own either way."""
    if shutil.which("wrk"):
        return _wrk(target, seconds, connections)
    command = [sys.executable, __file__, json.dumps(asdict(target)), str(seconds), str(connections)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Told(**json.loads(done.stdout))


def _wrk(target: Target, seconds: float, connections: int) -> Told:
    slots = target.size // target.range_bytes if target.range_bytes else 0
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(LUA % (json.dumps(target.path), target.times, target.range_bytes, slots))
        script.flush()
        headers = [f"-H{name}: {value}" for name, value in target.headers.items()]
        command = ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout=20"]
        command += ["-s", script.name, *headers, target.url]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rate = re.search(r"Requests/sec:\s*([\d.]+)", text)
    total = re.search(r"(\d+) requests in", text)
    if not (rate and total):
        raise SystemExit(f"wrk said: {text}")
    wrong = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    errors = re.search(
        r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text
    )
    failed = int(wrong[1]) if wrong else 0
    failed += sum(map(int, errors.groups())) if errors else 0
    return Told(float(rate[1]), int(total[1]), failed, "wrk")


async def _one(target: Target, until: float, counts: list[int]) -> None:
    host, port = target.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 20)
    head = "".join(f"{name}: {value}\r\n" for name, value in target.headers.items())
    while time.perf_counter() < until:
        path = target.path.replace("{time}", str(random.randrange(target.times or 1)))
        part = ""
        if target.range_bytes:
            at = random.randrange(target.size // target.range_bytes) * target.range_bytes
            part = f"Range: bytes={at}-{at + target.range_bytes - 1}\r\n"
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n{head}{part}\r\n".encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", answer)
        await reader.readexactly(int(length[1]) if length else 0)
        counts[0] += 1
        counts[1] += not answer.startswith(f"HTTP/1.1 {target.status}".encode())
    writer.close()


async def _many(target: Target, seconds: float, connections: int) -> Told:
    counts = [0, 0]
    began = time.perf_counter()
    await asyncio.gather(*(_one(target, began + seconds, counts) for _ in range(connections)))
    passed = time.perf_counter() - began
    return Told(counts[0] / passed, *counts, "sockets in Python")


if __name__ == "__main__":
    wanted = Target(**json.loads(sys.argv[1]))
    print(json.dumps(asdict(asyncio.run(_many(wanted, float(sys.argv[2]), int(sys.argv[3]))))))
