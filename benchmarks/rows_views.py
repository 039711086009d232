"""Views, packages and the origin: what is made when it is asked for, and what serving it costs."""

from __future__ import annotations

import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import loop
import peers
from clock import Contender
from rows import ProgramMissing, Row, Setting, Want, median, ratio, run

import fragdex
from fragdex.muxing.segments import Fragments

SEGMENT_SECONDS, SEGMENT_BYTES = 4, 449 << 10
FILM_SECONDS = 1800
CONNECTIONS, SERVED_SECONDS = 16, 4
WITH, WITHOUT = "fragdex, .fidx there", "fragdex, from the film"
ORIGIN, NGINX = "fragdex origin, one process", "nginx, one worker, stored segments"
PLAYLISTS = ("master.m3u8", "v1.m3u8", "a1.m3u8")
NGINX_CONFIG = """
worker_processes 1; pid nginx.pid; error_log nginx.err; daemon off;
events {{ worker_connections 256; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000; {temporary}
  server {{ listen 127.0.0.1:{port}; root {root}; }}
}}
"""
WRK = """
local paths = {%s}
local i = 0
request = function()
  i = i %% #paths + 1
  return wrk.format("GET", paths[i])
end
"""


def _wall(name: str, work: Callable[[], object], note: str = "") -> Contender:
    def once() -> Mapping[str, int]:
        began = time.perf_counter_ns()
        work()
        return {name: time.perf_counter_ns() - began}

    return Contender(name, once, note=note)


def view_range(setting: Setting) -> Row:
    """The first byte of any range of a fragmented view of two hours."""
    path = str(setting.files["progressive"][0])
    index = fragdex.index(path, exact=True)
    places = random.Random(1)
    total = 0
    parts = Fragments.parts

    def counted(self: Fragments, number: int) -> Any:
        nonlocal total
        total += 1
        return parts(self, number)

    with fragdex.open_source(path) as source:
        view = fragdex.view(index, "fragmented", source=source)

        def first() -> None:
            at = places.randrange(view.size)
            view.read(fragdex.ByteRange(at, at + 1), source=source)

        Fragments.parts = counted  # type: ignore[method-assign]
        try:
            first()
            touched = total
            f = run([_wall("fragdex.view", first)], 200)
            most = total - touched
        finally:
            Fragments.parts = parts  # type: ignore[method-assign]
    reached = median(f, "fragdex.view")
    runs = len(f["fragdex.view"].runs_ns)
    return Row(
        "view-range",
        "the first byte of a range of a fragmented view of 2 h, progressive, index open",
        f,
        [
            Want("< 1 ms", reached and reached / 1e6, 1, at_most=True, unit="ms"),
            Want("moofs made a range: those touched", most / runs, 1, at_most=True, unit=""),
        ],
    )


def playlists(setting: Setting) -> Row:
    """Multivariant and media playlists of two hours, from nothing but files; Python runs."""
    path = str(setting.files["progressive"][0])
    peers.BUILD.mkdir(exist_ok=True)
    kept, small = peers.BUILD / "two-hours.fidx", peers.BUILD / "two-hours-small.fidx"
    index = fragdex.index(path, exact=True)
    index.save(kept, samples=True)
    index.save(small)

    def lists(index: Any) -> None:
        package = fragdex.package(index, source=path)
        for name in PLAYLISTS:
            package[name].read(source=path)

    f = run(
        [
            _wall(WITH, lambda: lists(fragdex.open_index(kept)), "the process had started"),
            _wall(WITHOUT, lambda: lists(fragdex.index(path, exact=True)), "likewise"),
        ],
        setting.slow,
    )
    size = Path(path).stat().st_size
    wants = [
        Want(f"< {limit} ms, {name}", reached and reached / 1e6, limit, at_most=True, unit="ms")
        for name, limit in ((WITH, 20), (WITHOUT, 60))
        if (reached := median(f, name)) or True
    ]
    return Row(
        "playlists",
        "multivariant and media playlists of 2 h, progressive, cold; bytes stored for it",
        f,
        [
            *wants,
        ],
        {
            "fidx with samples, % of the film": 100 * kept.stat().st_size / size,
            "fidx without samples, % of the film": 100 * small.stat().st_size / size,
        },
    )


def origin_segments(setting: Setting) -> Row:
    """Segments of four seconds to sixteen connections, beside nginx with stored ones."""
    for program in ("nginx", "wrk"):
        if shutil.which(program) is None:
            raise ProgramMissing(f"{program} is not installed")
    film = _wide_film()
    with tempfile.TemporaryDirectory() as folder, _nginx(Path(folder), film) as stored, \
            _origin(film.parent) as origin:  # fmt: skip
        names = _segments(film)
        script = Path(folder) / "paths.lua"
        script.write_text(WRK % ", ".join(f'"/{film.name}/hls/{name}"' for name in names))

        def load(name: str, base: str) -> Contender:
            def once() -> Mapping[str, int]:
                out = subprocess.run(
                    ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SERVED_SECONDS}s", "-s", str(script),
                     base], capture_output=True, text=True, check=True,
                ).stdout  # fmt: skip
                if "Non-2xx" in out or "Socket errors" in out:
                    raise RuntimeError(out)
                match = re.search(r"Requests/sec:\s+([\d.]+)", out)
                assert match is not None
                return {name: round(1e9 / float(match[1]))}

            return Contender(name, once, note="time a request")

        before = _bytes_below(film.parent)
        f = run([load(NGINX, stored), load(ORIGIN, origin)], setting.slowest)
        stored_now = 100 * (_bytes_below(film.parent) - before) / before
    return Row(
        "origin-segments",
        f"4 s segments of {SEGMENT_BYTES >> 10} KiB to {CONNECTIONS} connections, time a request",
        f,
        [
            Want(
                "≥ 0.35 × nginx with stored segments",
                ratio(median(f, NGINX), median(f, ORIGIN)),
                0.35,
                at_most=False,
            ),
            Want("≤ 0.1 % stored beside the films", stored_now, 0.1, at_most=True, unit="%"),
        ],
    )


def origin_s3(setting: Setting) -> Row:
    """What a segment asks of an object store, cold: counted, on the wire."""
    from fragdex.muxing.view import Sources
    from fragdex.origin.titles import Titles
    from fragdex.testing import RangeServer

    facts: dict[str, Any] = {}
    reads: list[float] = []
    waste: list[float] = []
    film = _wide_film()
    alone = peers.BUILD / "wide-video.mp4"
    if not alone.exists():
        fragdex.view(fragdex.index(film, exact=True), tracks=[1]).write_to(alone.open("wb"))
    for name, path in (("one track in a file", alone), ("interleaved with sound", film)):
        with RangeServer({path.name: path.read_bytes()}) as far:
            titles = Titles(far.at("")[:-1])
            opened = titles.open((path.name,))
            package = opened.package
            segments = [one for one in package if one.startswith("v1/") and one.endswith(".m4s")]
            asked = sent = wanted = 0
            with titles.sources(opened) as sources, Sources(package.sources, sources) as read:
                for segment in segments[5:45]:
                    view = package[segment]
                    before, bytes_before = len(far.requests), far.bytes_sent
                    size = sum(map(len, read.bytes_of(view.blocks())))
                    asked += len(far.requests) - before
                    sent += far.bytes_sent - bytes_before
                    wanted += size
            titles.close()
        reads.append(asked / 40)
        waste.append(sent / wanted)
        facts[f"{name}: reads a segment, bytes × the segment"] = [reads[-1], waste[-1]]
    return Row(
        "origin-s3",
        "what a 4 s segment of a remote film reads, cold, counted by the server",
        {},
        [
            Want("1 ranged read a segment", max(reads), 1, at_most=True, unit=""),
            Want("≤ 1.02 × the segment, one track in a file", waste[0], 1.02, at_most=True),
            Want("the same, interleaved with sound", waste[1], 1.02, at_most=True),
        ],
        facts,
    )


def _wide_film() -> Path:
    """Half an hour whose segments of 4 s have 449 KiB: the loop, with filler in its pictures."""
    peers.BUILD.mkdir(exist_ok=True)
    (peers.BUILD / "films").mkdir(exist_ok=True)
    path = peers.BUILD / "films" / "wide.mp4"
    if path.exists():
        return path
    packets = loop.encode()
    pictures = [packet for stream, packet, *_ in packets.rows if stream == 0]
    own = sum(packet.size for packet in pictures) * SEGMENT_SECONDS // loop.SECONDS
    size = (SEGMENT_BYTES - own) // (SEGMENT_SECONDS * loop.FRAMES_PER_SECOND)
    # a NAL unit of filler data (ITU-T H.264, 7.3.2.7)
    filler = struct.pack(">I", size - 4) + b"\x0c" + b"\xff" * (size - 6) + b"\x80"
    rows: list[loop.Row] = []
    for stream, packet, dts, pts in packets.rows:
        if stream == 0:
            wide = av.Packet(bytes(packet) + filler)
            wide.is_keyframe = packet.is_keyframe
            packet = wide
        rows.append((stream, packet, dts, pts))
    wider = replace(packets, rows=rows)
    unfinished = path.with_suffix(".unfinished")
    with av.open(str(unfinished), "w", format="mp4", options={"movflags": "faststart"}) as out:
        streams = [out.add_stream_from_template(one) for one in (packets.video, packets.audio)]
        for number, packet in wider.packets(FILM_SECONDS):
            packet.stream = streams[number]
            out.mux_one(packet)
    unfinished.replace(path)
    return path


def _segments(film: Path) -> list[str]:
    package = fragdex.package(fragdex.index(film, exact=True), segment_duration=SEGMENT_SECONDS)
    return [name for name in package if name.startswith("v1/") and name.endswith(".m4s")]


@contextmanager
def _nginx(folder: Path, film: Path) -> Iterator[str]:
    """The segments as files, served by nginx."""
    package = fragdex.package(fragdex.index(film, exact=True), segment_duration=SEGMENT_SECONDS)
    root = folder / "www"
    folder.chmod(0o755)  # nginx gives its worker another user where it may
    with fragdex.open_source(film) as source:
        for name in _segments(film):
            place = root / film.name / "hls" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(package[name].read(source=source))
    port = _free_port()
    temporary = " ".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = folder / "nginx.conf"
    config.write_text(NGINX_CONFIG.format(port=port, root=root, temporary=temporary))
    with subprocess.Popen(["nginx", "-p", str(folder), "-c", str(config)]) as process:
        try:
            base = f"http://127.0.0.1:{port}"
            _answers(base)
            yield base
        finally:
            process.terminate()


@contextmanager
def _origin(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "fragdex", "origin", str(folder), "--port", "0",
               "--log", "none"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            base = process.stdout.readline().split()[-1].rstrip("/")
            _answers(f"{base}/wide.mp4/hls/v1.m3u8")
            yield base
        finally:
            process.terminate()


def _answers(url: str) -> None:
    """Wait until a server answers."""
    from urllib.error import HTTPError, URLError
    from urllib.request import urlopen

    for _ in range(200):
        try:
            urlopen(url, timeout=30).close()
        except HTTPError:
            return
        except URLError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit(f"{url} does not answer")


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port
