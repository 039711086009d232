"""Answering: from a saved index, one seek, many seeks."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Mapping

import av
import numpy as np
import peers
from clock import Contender, Figure, in_process
from rows import Row, Setting, Want, median, ratio, run

import fragdex

ONE, MANY = 20_000, 1_000_000
FIRST = 3600.5  # seconds; the middle of two hours, between two key frames
OPEN_C, SEEK_C = "fidx.h, map, open and seek", "fidx.h, seek"
SAVED = "open_index and seek"
PEER = "libavformat open and seek"


def open_saved(setting: Setting) -> Row:
    """A saved index answers before a peer has opened the file."""
    path, _ = setting.files["2h"]
    peers.BUILD.mkdir(exist_ok=True)
    plain, full = peers.BUILD / "2h.fidx", peers.BUILD / "2h-samples.fidx"
    index = fragdex.index(str(path))
    index.save(str(plain))
    index.save(str(full), samples=True)
    track = index.tracks[0].id

    def seek_in_file() -> None:
        with av.open(str(path)) as container:
            container.seek(int(FIRST * av.time_base))

    f = run(
        [
            in_process(SAVED, lambda: fragdex.open_index(str(plain)).track(track).seek(FIRST)),
            in_process(
                SAVED + ", samples saved too",
                lambda: fragdex.open_index(str(full)).track(track).seek(FIRST),
            ),
            in_process(PEER, seek_in_file, note="av.open, container.seek, close"),
        ],
        # half a millisecond with cold caches scatters by a third
        3 * setting.rounds,
    )
    ours = median(f, SAVED)
    return Row(
        "open-saved",
        "open a saved index (2 h) and answer the first seek",
        f,
        [
            Want("< 1 ms", ours and ours / 1e6, 1, at_most=True, unit="ms"),
            Want(
                "≥ 100 × faster than libavformat opening the file and seeking",
                ratio(median(f, PEER), ours),
                100,
                at_most=False,
            ),
        ],
        {"fidx_bytes": plain.stat().st_size, "fidx_bytes_with_samples": full.stat().st_size},
    )


def _each(name: str, times: int, work: Callable[[], object]) -> Contender:
    """Nanoseconds of one of many equal pieces of work, the loop around them included."""

    def once() -> Mapping[str, int]:
        began = time.perf_counter_ns()
        work()
        # Kept in picoseconds: a seek of an array takes some tens of nanoseconds.
        return {name: (time.perf_counter_ns() - began) * 1000 // times}

    return Contender(name, once, note=f"the mean of {times:,}, random times")


def seek(setting: Setting) -> Row:
    """Random times over the whole film, in each track."""
    path, _ = setting.files["2h"]
    index = fragdex.index(str(path))
    random = np.random.default_rng(2)
    stop = index.duration or 0.0
    few = [float(t) for t in random.uniform(0, stop, ONE)]
    many = random.uniform(0, stop, MANY)
    contenders: list[Contender] = []
    for track in index.tracks:
        track.seek(FIRST)  # what the first seek prepares belongs to the row before

        def one(ask: Callable[[float], object] = track.seek) -> None:
            for t in few:
                ask(t)

        def all_at_once(ask: Callable[[np.ndarray], object] = track.seek_many) -> None:
            ask(many)

        contenders.append(_each(f"seek, {track.kind}", ONE, one))
        contenders.append(_each(f"seek_many, {track.kind}", MANY, all_at_once))
    picoseconds = run(contenders, setting.rounds)
    slowest = {
        call: max(f.median_ns for name, f in picoseconds.items() if name.startswith(call + ","))
        for call in ("seek", "seek_many")
    }
    return Row(
        "seek",
        "one seek / many, 2 h (the slower track counts)",
        {name: _nanoseconds(figure) for name, figure in picoseconds.items()},
        [
            Want("< 5 µs a seek", slowest["seek"] / 1e6, 5, at_most=True, unit="µs"),
            Want(
                "≥ 5 million a second",
                1e12 / slowest["seek_many"] / 1e6,
                5,
                at_most=False,
                unit="million/s",
            ),
        ],
    )


def seek_in_c(setting: Setting) -> Row:
    """Random times by fidx.h, which shares no code with the library."""
    path, _ = setting.files["2h"]
    peers.BUILD.mkdir(exist_ok=True)
    saved = peers.BUILD / "2h.fidx"
    fragdex.index(str(path)).save(str(saved))
    program = peers.c_program("fidx_seek")

    def once() -> Mapping[str, int]:
        if program is None:
            raise peers.PeerFailed("no C compiler")
        command = [str(program), str(saved), str(MANY)]
        done = subprocess.run(command, capture_output=True, check=True, text=True)
        tracks = [json.loads(line) for line in done.stdout.splitlines()]
        return {
            OPEN_C: tracks[0]["open_ns"] * 1000,
            SEEK_C: max(track["seek_ps"] for track in tracks),
        }

    note = f"fidx_seek.c, one process; the mean of {MANY:,}, random times"
    picoseconds = run([Contender("fidx.h", once, note=note)], setting.rounds)
    seek = median(picoseconds, SEEK_C)
    return Row(
        "seek-c",
        "one seek by fidx.h, 2 h (the slower track counts)",
        {name: _nanoseconds(figure) for name, figure in picoseconds.items()},
        [Want("≤ 200 ns a seek", seek and seek / 1000, 200, at_most=True, unit="ns")],
    )


def _nanoseconds(figure: Figure) -> Figure:
    return Figure(figure.note, [round(ps / 1000) for ps in figure.runs_ns])
