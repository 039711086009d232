"""Requests a second: look-ups, ranges, and a large index against a small one."""

from __future__ import annotations

import compileall
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import processes
from load import Target
from measure import (
    Amount,
    Measured,
    Row,
    Setting,
    Want,
    alternate,
    by_processor,
    compared,
    loaded,
)
from processes import Server

import fragdex

PART = 256 << 10
OFTEN = 4
START_S = 0.9
CONSTANT, SEEK, MD5 = "FastAPI, a constant", "seek", "md5 look-up"
OURS, STARLETTE = "the service", "Starlette, bare file response"
BEHIND, NGINX = "nginx, X-Accel-Redirect to the service", "nginx alone"
SEGMENT = "a segment of a stored file"
LARGE, SMALL = "seek, large index", "seek, 100 fragments"


def register(server: Server, md5: str, index: fragdex.Index) -> str:
    """A file known by its index alone; gives its id."""
    path = server.folder / "given.fidx"
    index.save(path)
    with server.client() as client:
        new = client.post("/isobmff_files", json={"md5": md5, "filename": "given.mp4"})
        new.raise_for_status()
        file_id: str = new.json()["id"]
        client.post(
            f"/isobmff_files/{file_id}/index/upload", content=path.read_bytes()
        ).raise_for_status()
    return file_id


def _seek(server: Server, file_id: str, seconds: float) -> Target:
    path = f"/api/v1/isobmff_files/{file_id}/seek?track=1&time_ms={{time}}"
    return Target(server.url, path, server.headers, times=int(seconds * 1000))


def look_ups(setting: Setting, server: Server, film: Path) -> Measured:
    """`seek` and md5 look-up against a route that does nothing."""
    index = fragdex.index(film)
    md5 = str(UUID(int=7))
    file_id = register(server, md5, index)
    look_up = Target(server.url, f"/api/v1/isobmff_files/md5/{md5}", server.headers)
    with processes.plain(film) as plain:
        amounts = alternate(
            setting,
            {
                CONSTANT: loaded(setting, Target(plain.url, "/constant"), "async, the same server"),
                SEEK: loaded(
                    setting,
                    _seek(server, file_id, index.duration or 1),
                    f"random times, {len(index.tracks[0].fragments):,} fragments, with the key",
                ),
                MD5: loaded(setting, look_up, "with the key"),
            },
        )
    wants = [
        Want(f"{name} ≥ 0.5 × a constant", compared(amounts, name, CONSTANT), 0.5, at_most=False)
        for name in (SEEK, MD5)
    ]
    return Row("look-ups", "look-ups, 16 connections", wants=wants), amounts


def ranges(setting: Setting, folder: Path, film: Path, send: object) -> Measured:
    """Random 256 KiB of the large file, as they are and behind nginx."""
    size = film.stat().st_size
    with (
        processes.service(folder / "plain") as server,
        processes.service(folder / "accelerated", x_accel_prefix="/inside/") as hidden,
        processes.plain(film) as plain,
        processes.nginx(film, hidden) as front,
    ):

        def part(where: Server, path: str) -> Target:
            return Target(where.url, path, where.headers, 0, PART, size, 206)

        def track(of: Server, through: Server) -> str:
            ids = send(film, of, "ranges")  # type: ignore[operator]
            path = f"/api/v1/isobmff_tracks/{ids['isobmff']}/1"
            # uploads go past the cache; the film that the others send is in it
            url = f"{through.url}{path}"
            with of.client() as client, client.stream("GET", url) as answer:
                read = sum(map(len, answer.iter_raw()))
            if read != size:
                raise SystemExit(f"{url}: {read} bytes of {size}")
            return path

        contenders = {
            STARLETTE: loaded(setting, part(plain, "/file")),
            OURS: loaded(
                setting, part(server, track(server, server)), "with key, ETag, Repr-Digest"
            ),
        }
        if front is not None:
            contenders[NGINX] = loaded(setting, part(front, "/file"), "one worker, sendfile")
            contenders[BEHIND] = loaded(
                setting, part(front, track(hidden, front)), "the same nginx"
            )
        amounts = alternate(setting, contenders)
    nginx = compared(amounts, BEHIND, NGINX) if NGINX in amounts else None
    wants = [
        Want("≥ 0.9 × Starlette", compared(amounts, OURS, STARLETTE), 0.9, at_most=False),
        Want("behind nginx ≥ 0.4 × nginx alone", nginx, 0.4, at_most=False),
    ]
    work = f"256 KiB ranges of {size / 2**30:.3g} GiB, 16 connections"
    return Row("ranges", work, wants=wants), amounts


def segments(
    setting: Setting, server: Server, film: Path, send: Callable[[Path, Server, str], Any]
) -> Measured:
    """A segment of HLS by processor time, against a file response of as many bytes."""
    short = _beginning(film, setting.data / "100-fragments.mp4", 100)
    place = f"/isobmff_files/{send(short, server, 'segments')['isobmff']}/hls"
    with server.client() as client:
        playlist = client.get(f"{place}/v1.m3u8").raise_for_status().text
        name = next(line for line in playlist.splitlines() if line and line[0] != "#")
        size = len(client.get(f"{place}/{name}").raise_for_status().content)
    with processes.plain(film) as plain:
        part = Target(plain.url, "/file", {}, 0, size, film.stat().st_size, 206)
        segment = Target(server.url, f"/api/v1{place}/{name}", server.headers)
        amounts = alternate(
            setting,
            {
                STARLETTE: by_processor(setting, plain, part, "ranges of as many bytes"),
                SEGMENT: by_processor(setting, server, segment, f"{size >> 10} KiB, with the key"),
            },
        )
    reached = compared(amounts, SEGMENT, STARLETTE)
    wants = [Want("≥ 0.9 × Starlette", reached, 0.9, at_most=False)]
    return Row("segments", "segments of HLS, requests a second of processor", wants=wants), amounts


def start(setting: Setting, folder: Path) -> Measured:
    """Processor time of `fragdex serve` until it is ready, with its workers."""

    def work(_: int) -> float:
        with processes.service(folder, job_workers="2") as server:
            httpx.get(f"{server.url}/readyz", trust_env=False).raise_for_status()
            return server.busy_s()

    # as where it is installed
    compileall.compile_dir(Path(fragdex.__file__).parent, quiet=2)
    work(0)  # makes the database
    contenders = {OURS: (Amount("s of processor", "its folder is there"), work)}
    amounts = alternate(replace(setting, rounds=OFTEN * setting.rounds), contenders)
    reached = statistics.median(amounts[OURS].runs)
    wants = [Want(f"≤ {START_S:g} s", reached, START_S, at_most=True, unit="s")]
    return Row("start", "`fragdex serve` to ready", wants=wants), amounts


def large_index(setting: Setting, server: Server, film: Path, large: Path) -> Measured:
    """`seek` on 138,000 fragments and on 100, at random times."""
    few = fragdex.index(_beginning(film, setting.data / "100-fragments.mp4", 100))
    many = fragdex.index(large)
    small_id = register(server, str(UUID(int=100)), few)
    large_id = register(server, str(UUID(int=138)), many)
    count = sum(len(track.fragments) for track in many.tracks)
    # The machine's own ups and downs are larger than what is looked for: many short rounds.
    often = replace(setting, rounds=OFTEN * setting.rounds, seconds=setting.seconds / OFTEN)
    amounts = alternate(
        often,
        {
            SMALL: loaded(often, _seek(server, small_id, few.duration or 1)),
            LARGE: loaded(
                often, _seek(server, large_id, many.duration or 1), f"{count:,} fragments"
            ),
        },
    )
    # Two runs of the same work differ by some percent: that much is no difference.
    reached = compared(amounts, LARGE, SMALL)
    wants = [Want("large ≥ 0.95 × small", reached, 0.95, at_most=False)]
    return Row("large-index", "seek in a large index", wants=wants), amounts


def _beginning(film: Path, path: Path, fragments: int) -> Path:
    """The first fragments of a film, as a file."""
    track = fragdex.index(film).tracks[0].fragments
    stop = int(track.moof_offset[fragments])
    with film.open("rb") as whole:
        path.write_bytes(whole.read(stop))
    return path
