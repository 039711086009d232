"""Processor time of a request beside a constant of the same server, and of a second without any.

python benchmarks/service/processor.py FILM [SECONDS]

The server runs in this process, which counts its own time; requests come from another one, over one
connection. Of many turns the least counts. Then nobody asks for so many SECONDS (20).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx
import sender
from starlette.types import Receive, Scope, Send

from fragdex.service.app import close_context, make_app, open_context
from fragdex.service.config import Settings
from fragdex.service.records import keys
from fragdex.service.web.server import server_of

ROUNDS, REQUESTS = 5, 300
SETTLED_SECONDS = 6.0
CLIENT = r"""
import socket, sys
host, port, count, head = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4].encode()
connection, read = socket.create_connection((host, port)), b""
for _ in range(count):
    connection.sendall(head)
    while b"\r\n\r\n" not in read:
        read += connection.recv(1 << 20)
    answer, _, read = read.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in answer.split(b"\r\n")[1:])
    assert answer.split()[1] in (b"200", b"206"), answer
    while len(read) < int(fields[b"content-length"]):
        read += connection.recv(1 << 20)
    read = read[int(fields[b"content-length"]) :]
"""


def asked(client: httpx.Client, file_id: str) -> dict[str, tuple[str, str]]:
    """Path and range of each request, by its name."""
    files, track = f"/api/v1/isobmff_files/{file_id}", f"/api/v1/isobmff_tracks/{file_id}/1"
    md5 = client.get(files).json()["md5"]
    playlist = client.get(f"{files}/hls/v1.m3u8").text
    segment = next(line for line in playlist.splitlines() if line and line[0] != "#")
    return {
        "a constant": ("/constant", ""),
        "seek": (f"{files}/seek?track=1&time_ms=1234", ""),
        "look-up by md5": (f"/api/v1/isobmff_files/md5/{md5}", ""),
        "playlist": (f"{files}/hls/v1.m3u8", ""),
        "segment": (f"{files}/hls/{segment}", ""),
        "1 KiB of a composed track": (track, "bytes=0-1023"),
        "64 KiB of it": (track, "bytes=1024-66559"),
    }


def main(film: str, seconds: float) -> None:
    """Print a line for each request, and one for the time without any."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(data=Path(folder), port=0, rate_limit=0)
        context = open_context(settings)
        key = keys.create_key(context.database, "bench", scope=keys.ADMIN)
        app = make_app(context)

        async def constant(scope: Scope, receive: Receive, send: Send) -> None:
            if scope.get("path") != "/constant":
                await app(scope, receive, send)
                return
            fields = [(b"content-length", b"2"), (b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 200, "headers": fields})
            await send({"type": "http.response.body", "body": b"{}"})

        began, urls = threading.Event(), list[str]()
        server = server_of(app, settings, lambda url: (urls.append(url), began.set()))
        server.config.app = constant
        thread = threading.Thread(target=server.run)
        thread.start()
        began.wait()
        try:
            measured(urls[0], key, film, seconds)
        finally:
            server.should_exit = True
            thread.join()
            close_context(context)


def measured(url: str, key: str, film: str, seconds: float) -> None:
    """Ask a server in this process."""
    fields = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=url, headers=fields, trust_env=False, timeout=120) as client:
        sent = sender.send(film, "salt", 1 << 20, url, key)
        place, file_id = f"/api/v1/unprocessed_files/{sent['unprocessed']}/process", None
        while file_id is None:
            file_id = client.post(place).json()["isobmff_file_id"]
            time.sleep(0.1)
        requests = asked(client, file_id)
    host, port = url.removeprefix("http://").split(":")

    def cost(name: str, count: int) -> float:
        path, part = requests[name]
        head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n"
        head += f"Range: {part}\r\n\r\n" if part else "\r\n"
        before = time.process_time()
        subprocess.run([sys.executable, "-c", CLIENT, host, port, str(count), head], check=True)
        return time.process_time() - before

    best = dict.fromkeys(requests, float("inf"))
    for _ in range(ROUNDS):
        for name in requests:
            one = cost(name, 1)
            best[name] = min(best[name], (cost(name, REQUESTS) - one) / (REQUESTS - 1))
    for name, value in best.items():
        ratio = value / best["a constant"]
        print(f"{name:26s} {value * 1e6:8.1f} us  {ratio:6.2f} constants")
    time.sleep(SETTLED_SECONDS)
    before = time.process_time()
    time.sleep(seconds)
    print(f"nobody asks: {(time.process_time() - before) / seconds:.4f} of a core")


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 20.0)
