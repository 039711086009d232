"""Uploads: one large one against what hashing and the disk take alone, and many at once."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import processes
from measure import Amount, Measured, Row, Setting, Want, alternate, compared
from processes import HERE, Server

CHUNK = 8 << 20
BUFFER = 1 << 20
UPLOAD, HASH, WRITE = "upload with md5 and index", "md5 alone", "write and fsync alone"
PUSH, PUSH_HASHED = "fragdex.client's push", "the same, hash_first"
SALT_BYTES = 32
MEMORY_MB = 150
MANY_MB = 300
MANY_BYTES, MANY_CHUNK = 2 << 20, 512 << 10


def send(film: Path, server: Server, salt: str, chunk: int = CHUNK) -> dict[str, Any]:
    """Have another process upload the film; what it tells."""
    done = subprocess.run(
        [sys.executable, str(HERE / "sender.py"), str(film), salt, str(chunk)],
        env={**os.environ, "SERVICE_URL": server.url, "KEY": server.key},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    ids: dict[str, Any] = json.loads(done.stdout)
    if not (ids["complete"] and ids["isobmff"]):
        raise SystemExit(f"the upload came to a bad end: {ids}")
    return ids


def _hash(film: Path) -> float:
    digest, buffer = hashlib.md5(), bytearray(BUFFER)
    began = time.perf_counter()
    with film.open("rb", buffering=0) as file:
        while size := file.readinto(buffer):
            digest.update(memoryview(buffer)[:size])
    digest.digest()
    return film.stat().st_size / 2**20 / (time.perf_counter() - began)


def _write(film: Path, folder: Path, number: int) -> float:
    target, buffer = folder / f"written-{number}", bytearray(CHUNK)
    began = time.perf_counter()
    with film.open("rb", buffering=0) as file, target.open("wb", buffering=0) as copy:
        while size := file.readinto(buffer):
            copy.write(memoryview(buffer)[:size])
        os.fsync(copy.fileno())
    speed = film.stat().st_size / 2**20 / (time.perf_counter() - began)
    target.unlink()
    return speed


def upload(setting: Setting, server: Server, film: Path) -> Measured:
    """One upload in chunks; the slower of its two necessary parts is the measure."""
    size = film.stat().st_size

    def run(number: int) -> float:
        ids = send(film, server, f"{time.time_ns()}")
        with server.client() as client:
            # another file each time: its bytes go away by and by, beside the next run
            client.delete(f"/unprocessed_files/{ids['unprocessed']}").raise_for_status()
            client.delete(f"/isobmff_files/{ids['isobmff']}").raise_for_status()
        return size / 2**20 / (ids["ns"] / 1e9)

    begins = server.now_mb()
    amounts = alternate(
        setting,
        {
            HASH: (Amount("MiB/s", "read and hashed a MiB at a time"), lambda n: _hash(film)),
            WRITE: (
                Amount("MiB/s", "8 MiB at a time, one fsync at the end"),
                lambda n: _write(film, server.folder, n),
            ),
            UPLOAD: (Amount("MiB/s", "8 MiB chunks, each durable before its answer"), run),
        },
    )
    ratios = sorted(
        ours / min(one, two)
        for ours, one, two in zip(
            amounts[UPLOAD].runs, amounts[HASH].runs, amounts[WRITE].runs, strict=True
        )
    )
    wants = [
        Want("≥ 0.6 × the slower of both", ratios[len(ratios) // 2], 0.6, at_most=False),
        Want("peak resident memory of the server", server.peak_mb(), MEMORY_MB, True, "MB"),
    ]
    # most of it is what was imported
    facts = {"bytes": size, "resident_before_mb": begins}
    return Row("upload", f"upload of {size / 2**30:.3g} GiB", wants=wants, facts=facts), amounts


def _push(film: Path, server: Server, hash_first: bool, busy: dict[str, float]) -> float:
    """MiB/s of a push by the client, another process; the file is another one each time.

    `busy` is given the processor seconds of both ends.
    """
    before = server.busy_s()
    with film.open("r+b") as file:
        file.seek(-SALT_BYTES, os.SEEK_END)
        file.write(f"{time.time_ns()}".encode().ljust(SALT_BYTES, b"."))
    done = subprocess.run(
        [sys.executable, str(HERE / "pusher.py"), str(film), str(int(hash_first))],
        env={**os.environ, "SERVICE_URL": server.url, "KEY": server.key},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    report: dict[str, Any] = json.loads(done.stdout)
    busy["server"] = server.busy_s() - before
    busy["client"] = report["busy_ns"] / 1e9
    with server.client() as client, film.open("rb") as file:
        if report["md5"] != hashlib.file_digest(file, "md5").hexdigest():
            raise SystemExit(f"the push came to a bad end: {report}")
        client.delete(f"/files/{report['id']}").raise_for_status()
    return film.stat().st_size / 2**20 / (report["ns"] / 1e9)


def _busy_hashing(film: Path, name: str) -> float:
    """Processor seconds of one digest of the film."""
    digest, buffer = hashlib.new(name), bytearray(BUFFER)
    began = time.process_time()
    with film.open("rb", buffering=0) as file:
        while size := file.readinto(buffer):
            digest.update(memoryview(buffer)[:size])
    return time.process_time() - began


def push(setting: Setting, server: Server, film: Path) -> Measured:
    """The client's push against md5 alone, and against what the service takes at best.

    Both ends hash: md5 in the client, md5 and SHA-256 in the service, on the cores that also carry
    the bytes. `most_of_md5` is what the processor time of both would allow where neither the disk
    nor an answer is waited for.
    """
    busy: dict[str, float] = {}
    amounts = alternate(
        setting,
        {
            HASH: (Amount("MiB/s", "read and hashed a MiB at a time"), lambda n: _hash(film)),
            WRITE: (
                Amount("MiB/s", "8 MiB at a time, one fsync at the end"),
                lambda n: _write(film, server.folder, n),
            ),
            PUSH: (
                Amount("MiB/s", "hashed on its way"),
                lambda n: _push(film, server, False, busy),
            ),
            PUSH_HASHED: (
                Amount("MiB/s", "looked for by its md5 first: the file is read twice"),
                lambda n: _push(film, server, True, {}),
            ),
        },
    )
    pairs = zip(amounts[PUSH].runs, amounts[HASH].runs, strict=True)
    ratios = sorted(ours / alone for ours, alone in pairs)
    wants = [Want("≥ 0.6 × md5 alone", ratios[len(ratios) // 2], 0.6, at_most=False)]
    size = film.stat().st_size
    md5 = _busy_hashing(film, "md5")
    facts = {
        "processor_s": {**busy, "md5": md5, "sha256": _busy_hashing(film, "sha256")},
        "most_of_md5": (os.cpu_count() or 1) * md5 / sum(busy.values()),
    }
    words = f"push of {size / 2**30:.3g} GiB by the client"
    return Row("push", words, wants=wants, facts=facts), amounts


CHUNKS = (256 << 10, 2 << 20, 8 << 20)
HASHED = "md5 and SHA-256 alone"


def chunks(setting: Setting, server: Server, film: Path) -> Measured:
    """Uploads by chunks of several sizes: the processor that the service takes for a MiB."""
    size = film.stat().st_size / 2**20

    def run(chunk: int) -> float:
        before = server.busy_s()
        ids = send(film, server, f"{time.time_ns()}", chunk)
        busy = server.busy_s() - before
        with server.client() as client:
            client.delete(f"/unprocessed_files/{ids['unprocessed']}").raise_for_status()
            client.delete(f"/isobmff_files/{ids['isobmff']}").raise_for_status()
        return size / busy

    def hashed(number: int) -> float:
        return size / (_busy_hashing(film, "md5") + _busy_hashing(film, "sha256"))

    names = {f"chunks of {chunk >> 10} KiB": chunk for chunk in CHUNKS}
    unit = "MiB/s of processor"
    amounts = alternate(
        setting,
        {HASHED: (Amount(unit), hashed)}
        | {
            name: (Amount(unit), lambda n, chunk=chunk: run(chunk)) for name, chunk in names.items()
        },
    )
    small, _, large = names
    reached = compared(amounts, small, large)
    wants = [Want("256 KiB ≥ 0.3 × 8 MiB", reached, 0.3, at_most=False)]
    return Row("chunks", f"upload of {size:.0f} MiB by chunks", wants=wants), amounts


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: str, body: bytes
) -> dict[str, Any]:
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode())
    writer.write(body)
    await writer.drain()
    answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = int(answer.partition("content-length: ")[2].partition("\r\n")[0] or 0)
    text = await reader.readexactly(length)
    if not answer.startswith("http/1.1 20"):
        raise SystemExit(f"{head.splitlines()[0]}: {answer.splitlines()[0]} {text.decode()}")
    fields: dict[str, Any] = json.loads(text)
    return fields


async def _one(server: Server, number: int, gate: asyncio.Barrier) -> bool:
    host, port = server.url.removeprefix("http://").split(":")
    data = number.to_bytes(4, "big") * (MANY_BYTES // 4)
    digest = hashlib.md5(data).hexdigest()
    reader, writer = await asyncio.open_connection(host, int(port))
    fields = f"Host: {host}:{port}\r\nAuthorization: Bearer {server.key}\r\n"
    new = {"md5": digest, "filename": f"{number}.bin", "byte_size": MANY_BYTES}
    path = "/api/v1/unprocessed_files"
    head = f"POST {path} HTTP/1.1\r\n{fields}"
    record = await _exchange(reader, writer, head, json.dumps(new).encode())
    await gate.wait()
    for start in range(0, MANY_BYTES, MANY_CHUNK):
        head = f"POST {path}/{record['id']}/upload HTTP/1.1\r\n{fields}"
        head += f"Content-Range: bytes {start}-{start + MANY_CHUNK - 1}/{MANY_BYTES}\r\n"
        record = await _exchange(reader, writer, head, data[start : start + MANY_CHUNK])
    writer.close()
    return bool(record["complete"]) and record["md5"].replace("-", "") == digest


async def _all(server: Server, count: int) -> tuple[int, float]:
    gate = asyncio.Barrier(count + 1)
    tasks = [asyncio.create_task(_one(server, number, gate)) for number in range(count)]
    await gate.wait()
    began = time.perf_counter()
    done = await asyncio.gather(*tasks)
    return sum(done), time.perf_counter() - began


def many(setting: Setting, folder: Path) -> Measured:
    """All at once, each in four chunks, over a server that is new."""
    with processes.service(folder) as server:
        complete, seconds = asyncio.run(_all(server, setting.uploads))
        peak = server.peak_mb()
    speed = Amount("/s", f"{MANY_BYTES >> 20} MiB each, in chunks of {MANY_CHUNK >> 10} KiB")
    speed.runs.append(complete / seconds)
    wants = [
        Want("complete, md5 right", complete / setting.uploads, 1, at_most=False),
        Want("peak resident memory of the server", peak, MANY_MB, True, "MB"),
    ]
    row = Row("many-uploads", f"{setting.uploads} uploads at once", wants=wants)
    return row, {"uploads completed": speed}
