"""Building an index: from moofs, from a sidx, from the tables of a moov."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import peers
import prepared
from clock import Contender, Figures, in_process
from rows import Row, Setting, Want, fastest, median, ratio, run

import fragdex

BUILD, SAMPLES, PURE = "fragdex.index", "fragdex.index + samples", "fragdex, pure Python"
PERMILLE = 0.1 / 100  # "< 0.1 % of the bytes"


def _materialise(path: Path) -> None:
    """Index and make every table, those of samples too, which otherwise wait to be asked for."""
    for track in fragdex.index(str(path)).tracks:
        track.samples  # noqa: B018


def _builders(path: Path) -> list[Contender]:
    return [
        in_process(BUILD, lambda: fragdex.index(str(path)), note="fragment and sync tables"),
        in_process(SAMPLES, lambda: _materialise(path), note="and the tables of all samples"),
    ]


def _facts(path: Path, samples: int) -> dict[str, Any]:
    """How the index was made; a wrong sample count ends the benchmark."""
    index = fragdex.index(str(path))
    seen = sum(track.sample_count or 0 for track in index.tracks)
    if index.exact and seen != samples:
        raise SystemExit(f"{path.name}: fragdex saw {seen} samples, there are {samples}")
    how = index.how
    return {
        "method": how.method,
        "requests": how.requests,
        "bytes_read": how.bytes_read,
        "mdat_bytes_read": how.mdat_bytes_read,
        "file_bytes": path.stat().st_size,
        "table_bytes": sum(t.fragments.nbytes + t.sync_samples.nbytes for t in index.tracks),
    }


def build_2h(setting: Setting) -> Row:
    """3,600 moofs of two tracks."""
    path, counts = setting.files["2h"]
    readers = peers.all_readers(path, counts.samples, slow=setting.slow, slowest=setting.slowest)
    pure = peers.pure_python(path, counts.samples)
    f = run([*_builders(path), pure, *readers], setting.rounds)
    ours, floor = median(f, BUILD), fastest(f, *peers.FLOORS)
    return Row(
        "build-2h",
        f"build, 2 h, {counts.moofs:,} moofs, {counts.samples:,} samples",
        f,
        [
            Want("≤ 1.9 × the C floor", ratio(ours, floor), 1.9, at_most=True),
            Want("≥ 4 × faster than libavformat's open", _faster(f, peers.OPEN), 4, at_most=False),
            Want("≥ 100 × faster than PyAV demux", _faster(f, peers.DEMUX), 100, at_most=False),
            Want("≥ 400 × faster than pymp4", _faster(f, "pymp4"), 400, at_most=False),
        ],
        _facts(path, counts.samples) | prepared.instructions(path),
    )


def build_2h_reread(setting: Setting) -> Row:
    """The same file, out of the page cache and read in once, in order."""
    path, counts = setting.files["2h"]
    prepared.read_in_order(path)
    f = run([_builders(path)[0], peers.floor(path)], setting.rounds)
    ours, floor = median(f, BUILD), fastest(f, *peers.FLOORS)
    return Row(
        "build-2h-reread",
        f"build, 2 h, the file dropped from the page cache and read in order, {counts.moofs:,} "
        "moofs",
        f,
        [Want("≤ 2.2 × the C floor", ratio(ours, floor), 2.2, at_most=True)],
    )


def build_frames(setting: Setting) -> Row:
    """138,000 moofs of one frame."""
    path, counts = setting.files["frames"]
    readers = peers.all_readers(path, counts.samples, slow=setting.slow, slowest=1)
    f = run([*_builders(path), peers.pure_python(path, counts.samples), *readers], setting.rounds)
    floor, opened = fastest(f, *peers.FLOORS), median(f, peers.OPEN)
    pure = median(f, PURE)
    return Row(
        "build-frames",
        f"build, one frame a fragment, 30 min, {counts.moofs:,} moofs",
        f,
        [
            Want("≤ 2 × the C floor, C extension", ratio(median(f, BUILD), floor), 2, at_most=True),
            Want("≤ 6 × the C floor, pure Python", ratio(pure, floor), 6, at_most=True),
            Want(
                "≥ 6 × faster than libavformat's open, C extension",
                _faster(f, peers.OPEN),
                6,
                at_most=False,
            ),
            Want(
                "≥ 4 × faster than libavformat's open, pure Python",
                ratio(opened, pure),
                4,
                at_most=False,
            ),
        ],
        _facts(path, counts.samples),
    )


def build_sidx(setting: Setting) -> Row:
    """Two reads instead of 3,600 moofs."""
    path, counts = setting.files["sidx"]
    f = run([_builders(path)[0], peers.libavformat_open(path)], setting.rounds)
    facts = _facts(path, counts.samples)
    share = facts["bytes_read"] / counts.bytes
    return Row(
        "build-sidx",
        f"build from a sidx, 2 h (it was indexed by {facts['method']})",
        f,
        [
            Want("faster than libavformat's open", _faster(f, peers.OPEN), 1, at_most=False),
            Want("< 0.1 % of the bytes", share * 100, PERMILLE * 100, at_most=True, unit="%"),
        ],
        facts,
    )


def build_progressive(setting: Setting) -> Row:
    """Every table of a moov made, those of samples too."""
    path, counts = setting.files["progressive"]
    javascript = (
        peers.javascript("mp4box", path, counts.samples, setting.slow),
        peers.javascript("mediabunny", path, counts.samples, setting.slow),
    )
    f = run([*_builders(path), peers.libavformat_open(path), *javascript], setting.rounds)
    faster = ratio(median(f, peers.OPEN), median(f, SAMPLES))
    return Row(
        "build-progressive",
        f"progressive, 2 h, {counts.samples:,} samples",
        f,
        [Want("≥ 3 × faster than libavformat's open, all tables made", faster, 3, at_most=False)],
        _facts(path, counts.samples),
    )


def build_short(setting: Setting) -> Row:
    """A clip: what an index costs whatever the file."""
    path, counts = setting.files["short"]
    f = run([*_builders(path), peers.libavformat_open(path)], setting.rounds)
    return Row(
        "build-short",
        f"progressive, 16 s, {counts.samples:,} samples",
        f,
        [Want("≥ 12 × faster than libavformat's open", _faster(f, peers.OPEN), 12, at_most=False)],
        _facts(path, counts.samples) | prepared.instructions(path),
    )


def build_short_fragments(setting: Setting) -> Row:
    """A fragmented clip."""
    path, counts = setting.files["short-fragments"]
    f = run([*_builders(path), peers.libavformat_open(path)], setting.rounds)
    return Row(
        "build-short-fragments",
        f"{counts.moofs} fragments, 16 s, {counts.samples:,} samples",
        f,
        [Want("≥ 8 × faster than libavformat's open", _faster(f, peers.OPEN), 8, at_most=False)],
        _facts(path, counts.samples) | prepared.instructions(path),
    )


def digests(setting: Setting) -> Row:
    """A SHA-256 of each piece, and the md5 of all, in one pass; beside the md5 alone."""
    path, _ = setting.files["2h"]
    whole, both = "fragdex.index + md5", "fragdex.index + md5 + digests"
    f = run(
        [
            in_process(whole, lambda: fragdex.index(str(path), md5=True)),
            in_process(both, lambda: fragdex.index(str(path), md5=True, digests=True)),
        ],
        setting.slow,
    )
    pieces = fragdex.index(str(path), digests=True).digests
    times = ratio(median(f, both), median(f, whole))
    # Two hashes on two processors: where only one is free, the time is that of both.
    alone, together = (
        min(_processor_ns(path, digests=digests) for _ in range(3)) for digests in (False, True)
    )
    return Row(
        "digests",
        f"digests of {len(pieces):,} pieces, {path.stat().st_size >> 20:,} MiB",
        f,
        [Want("≤ 1.15 × md5 alone", times, 1.15, at_most=True)],
        {
            "pieces": len(pieces),
            "table_bytes": pieces.table.nbytes,
            "processor_ratio": round(together / alone, 3),
        },
    )


def _processor_ns(path: Path, *, digests: bool) -> int:
    """Processor time of one index with md5."""
    began = time.process_time_ns()
    fragdex.index(str(path), md5=True, digests=digests)
    return time.process_time_ns() - began


def _faster(figures: Figures, peer: str) -> float | None:
    """How many times faster than a peer `fragdex.index` was."""
    return ratio(median(figures, peer), median(figures, BUILD))
