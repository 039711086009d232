"""The part of the demo that goes over HTTP: start the service, push a video through, seek."""

from __future__ import annotations

import hashlib
import json
import os
import re
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

__all__ = ["missing", "story"]

API = "/api/v1"
CHUNK = 1 << 20
PATIENCE_S = 60
SHOWN = 2
"""Chunks that are shown; of the others there are only more."""


def missing() -> str | None:
    """What is not installed and would be needed, or None."""
    try:
        import dbos  # noqa: F401
        import fastapi  # noqa: F401
        import httpx  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        return error.name or "the service"
    return None


def story(movie: Path, moment: str, expect: Callable[[bool, str], None]) -> None:
    """Upload `movie`, have it processed, seek to `moment`, fetch what the answer names."""
    import httpx

    with tempfile.TemporaryDirectory(prefix="fragdex-demo-") as folder, _serving(folder) as started:
        url, key = started
        headers = {"Authorization": f"Bearer {key}"}
        with httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=60) as client:
            file_id = _push(client, movie)
            _find(client, file_id, moment, expect)
        print("\n  The service is ended; its data folder was a temporary one.")


@contextmanager
def _serving(folder: str) -> Iterator[tuple[str, str]]:
    """`fragdex serve` on a free port of this machine; its URL, and the key it made."""
    print("\n  $ fragdex serve --port 0 --data …", flush=True)
    command = [sys.executable, "-m", "fragdex", "serve", "--port", "0", "--data", folder]
    # settings of the user's own service would lead elsewhere
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FRAGDEX_")}
    environment["FRAGDEX_LOG_LEVEL"] = "warning"
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert child.stdout
        key = url = ""
        while not url:
            ready, _, _ = select.select([child.stdout], [], [], PATIENCE_S)
            line = child.stdout.readline() if ready else ""
            if not line:
                raise SystemExit("  The service did not start.")
            print(f"  {line.rstrip()}", flush=True)
            key = line.strip() if line.startswith("ef_") else key
            if found := re.match(r"Serving (http://\S+)", line):
                url = found[1]
        yield url, key
    finally:
        child.terminate()
        try:
            child.wait(PATIENCE_S)
        finally:
            child.kill()
            child.wait()


def _push(client: httpx.Client, movie: Path) -> str:
    """Upload in chunks, process; gives the id of the ISOBMFF file that came of it."""
    data = movie.read_bytes()
    new = {
        "md5": hashlib.md5(data).hexdigest(),
        "filename": movie.name,
        "byte_size": len(data),
    }
    record = _ask(client, "POST", "/unprocessed_files", json=new).json()
    place = f"/unprocessed_files/{record['id']}/upload"
    chunks = range(0, len(data), CHUNK)
    for number, start in enumerate(chunks):
        part = data[start : start + CHUNK]
        span = f"bytes {start}-{start + len(part) - 1}/{len(data)}"
        _ask(
            client,
            "POST",
            place,
            quiet=SHOWN <= number < len(chunks) - 1,
            content=part,
            headers={"Content-Range": span},
        )
        if number == SHOWN and number < len(chunks) - 1:
            print("\n  … and so on, chunk by chunk")
    process = _ask(client, "POST", f"/unprocessed_files/{record['id']}/process").json()
    if process["completed_at"] is None:
        _follow(client, process["id"])
        process = client.get(f"{API}/process_isobmff/{process['id']}").json()
    if process["failed_at"] is not None:
        raise SystemExit(f"  The service cannot process it: {process.get('problem')}")
    file_id: str = process["isobmff_file_id"]
    return file_id


def _follow(client: httpx.Client, process_id: str) -> None:
    """Events until the process has ended."""
    path = f"{API}/process_isobmff/{process_id}/progress"
    print(f"\n  $ curl -N …{path.removeprefix(API)}", flush=True)
    began = time.monotonic()
    last = ""
    with client.stream("GET", path) as answer:
        for line in answer.iter_lines():
            if line.startswith("event:"):
                last = line.partition(":")[2].strip()
            if line.startswith("data:") and last != "heartbeat":
                print(f"  {last} {line.partition(':')[2].strip()}", flush=True)
    print(f"  ended after {time.monotonic() - began:.1f} s")


def _find(
    client: httpx.Client, file_id: str, moment: str, expect: Callable[[bool, str], None]
) -> None:
    """Seek, and fetch exactly the bytes that the answer names."""
    milliseconds = round(float(moment) * 1000)
    seek = f"/isobmff_files/{file_id}/seek?time_ms={milliseconds}"
    hit = _ask(client, "GET", seek).json()
    stop = hit["offset"] + hit["size"]
    track = f"/isobmff_tracks/{file_id}/{hit['track']}"
    part = _ask(
        client, "GET", track, headers={"Range": f"bytes={hit['offset']}-{stop - 1}"}, told=False
    )
    kinds = ", ".join(
        part.content[at + 4 : at + 8].decode("latin-1") for at in _boxes(part.content)
    )
    print(f"  {len(part.content):,} bytes, {part.headers['content-range']}: {kinds}")
    expect(part.status_code == 206 and len(part.content) == hit["size"], "the bytes asked for")
    expect(b"moof" in part.content[:4096], "they begin a fragment")
    expect(hit["time_ms"] <= milliseconds, f"decoding starts at or before {moment} s")


def _boxes(data: bytes) -> Iterator[int]:
    """Where the top boxes begin (ISO/IEC 14496-12, 4.2)."""
    at = 0
    while at + 8 <= len(data):
        yield at
        at += max(8, int.from_bytes(data[at : at + 4], "big"))


def _ask(
    client: httpx.Client,
    method: str,
    path: str,
    *,
    quiet: bool = False,
    told: bool = True,
    headers: dict[str, str] | None = None,
    **body: Any,
) -> httpx.Response:
    """Send a request, shown as curl would be called, and show the answer."""
    if not quiet:
        words = ["$ curl"] if method == "GET" else [f"$ curl -X {method}"]
        words += [f"-H '{name}: {value}'" for name, value in (headers or {}).items()]
        words += [f"-d '{json.dumps(value)}'" for name, value in body.items() if name == "json"]
        words += ["--data-binary @chunk" for name in body if name == "content"]
        print(f"\n  {' '.join(words)} …{path}", flush=True)
    answer = client.request(method, API + path, headers=headers, **body)
    if answer.is_error:
        raise SystemExit(f"  {answer.status_code} {answer.text}")
    if told and not quiet:
        print(f"  {answer.status_code} {_short(answer.text)}", flush=True)
    return answer


def _short(text: str) -> str:
    return text if len(text) <= 400 else f"{text[:400]} …"
