"""The digests of the pieces of a file: where pieces end, one pass that makes them, and the check.

A piece ends where a fragment does, and inside a fragment where the samples of a track begin or end,
so that damage is named by its fragment and what keeps the samples keeps their digests. No piece is
longer than `MOST_BYTES`: that is the grid of progressive files, and what a checked read needs more
than was requested (docs/decisions/0063).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from hashlib import sha256
from typing import Any, Final, NamedTuple

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.digest import Md5
from fragdex.errors import InexactIndex, LimitExceeded
from fragdex.fragments.findings import Finding
from fragdex.fragments.pieces import MOST_BYTES, PieceDigests, PieceTable, leaves_of
from fragdex.fragments.table import NULL, FragmentFlags, Int64, SampleTable
from fragdex.record import record
from fragdex.seeking.model import Index, Track
from fragdex.seeking.times import presentation
from fragdex.sources import Source

__all__ = ["damage", "digest_pieces", "edges_of"]

_AT_ONCE: Final = 4 << 20
"""Bytes that are read together when they are checked, where pieces are small."""


def edges_of(index: Index, size: int) -> Int64:
    """Where the pieces of a file begin, and where the last one ends."""
    columns: list[Any] = [np.array([0, size], np.int64)]
    runs: list[Int64] = []
    for track in index.tracks:
        rows = track.fragments
        virtual = (rows.flags & _VIRTUAL) != 0
        places = [rows.offset, rows.offset + rows.size, rows.data_start, rows.data_stop]
        columns += (column[~virtual & (rows.data_start != NULL)] for column in places)
        columns += (column[~virtual & (rows.data_start == NULL)] for column in places[:2])
        runs += (column[virtual & (rows.data_start != NULL)] for column in places[2:])
    together = np.concatenate(runs) if runs else np.zeros(0, np.int64)
    if len(together):
        # A progressive file: from the first sample to the last a grid, for chunks can be tiny.
        columns.append(np.array([together.min(), together.max()]))
    edges = np.unique(np.concatenate(columns))
    edges = edges[(edges >= 0) & (edges <= size)]
    counts = -(-np.diff(edges) // MOST_BYTES)
    first = np.repeat(edges[:-1], counts)
    number = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.append(first + number * MOST_BYTES, size) if len(edges) > 1 else edges


def digest_pieces(source: Source, edges: Int64, md5: Md5 | None = None) -> PieceDigests:
    """The digests of pieces, and with them the md5 of all, in one pass over the bytes.

    Args:
        edges: where pieces begin, rising, and where the last one ends.
        md5: is fed on a thread of its own with the same bytes.

    Raises:
        TruncatedInput: the source ends before the last edge.
        SourceError: it cannot be read.
    """
    places = edges.tolist()
    digests: list[bytes] = []
    running, at = sha256(), places[0]
    with ThreadPoolExecutor(1) if md5 is not None else nullcontext() as pool:
        for buffer in source.pieces(ByteRange(places[0], places[-1])):
            view = memoryview(buffer)
            beside = pool.submit(md5.update, view) if pool is not None and md5 else _DONE
            stop = at + len(view)
            while len(digests) + 1 < len(places) and places[len(digests) + 1] <= stop:
                end = places[len(digests) + 1]
                running.update(view[: end - at])
                digests.append(running.digest())
                view, at, running = view[end - at :], end, sha256()
            running.update(view)
            at = stop
            # The buffer is used again for the next piece.
            beside.result()
    columns = {"start": edges[:-1], "size": np.diff(edges), "digest": leaves_of(digests)}
    return PieceDigests(PieceTable.of(columns))


def digests_of_grown(known: PieceDigests, source: Source, edges: Int64) -> PieceDigests:
    """The digests of a file that has grown; only pieces that are new or have grown are read."""
    old, most = known.table, min(len(known), len(edges) - 1)
    same = (old.start[:most] == edges[:most]) & (old.size[:most] == np.diff(edges[: most + 1]))
    kept = int(np.argmin(same)) if not same.all() else most
    head = old.rows(slice(kept))
    if kept == len(edges) - 1:
        return PieceDigests(head)
    return PieceDigests(PieceTable.concat([head, digest_pieces(source, edges[kept:]).table]))


_VIRTUAL: Final = np.uint32(FragmentFlags.VIRTUAL)
_DONE: Final[Future[None]] = Future()
_DONE.set_result(None)


def damage(
    index: Index,
    source: Source,
    progress: Callable[[int, int | None], object] | None = None,
) -> tuple[Finding, ...]:
    """Which fragments of a file are not as they were when their digests were made.

    Args:
        progress: called with the bytes done and the bytes in all.

    Returns: a finding `damaged-bytes` for each fragment and track that has other bytes now, with
    its presentation times, and for each piece that belongs to none, in file order. Empty: every
    byte is as it was.

    Raises:
        InexactIndex: the index has no digests.
        SourceError: the file cannot be read.
    """
    digests = index.digests
    if digests is None:
        raise InexactIndex(
            "the index has no digests of pieces",
            advice="make it with digests=True (fragdex index --digests)",
        )
    wrong = np.fromiter(_wrong_rows(digests, source, progress), np.int64)
    start = digests.table.start[wrong]
    ranges = MergedRanges(start, start + digests.table.size[wrong])
    findings: list[Finding] = []
    named: list[MergedRanges] = []
    headers = _outside_of_samples(index, ranges)
    for track in index.tracks:
        for finding, where in _named(track, ranges, headers):
            findings.append(finding)
            named.append(where)
    known = MergedRanges.merged(named)
    for begin, end in zip(ranges.start.tolist(), ranges.stop.tolist(), strict=True):
        if not known.touch(begin, end):
            text = f"{end - begin:,} bytes outside of fragments are not as when indexed"
            findings.append(Finding("damaged-bytes", text, offset=begin))
    if source.size is not None and source.size > digests.size:
        text = f"{source.size - digests.size:,} bytes follow that were not there when indexed"
        findings.append(Finding("damaged-bytes", text, offset=digests.size))
    return tuple(sorted(findings, key=lambda finding: (finding.offset or 0, finding.track or 0)))


@record(frozen=True, slots=True)
class MergedRanges:
    """Ranges of bytes, in order and without overlaps, as two columns."""

    start: Int64
    stop: Int64

    @classmethod
    def merged(cls, parts: Sequence[MergedRanges]) -> MergedRanges:
        """Ranges in any order, joined where they overlap."""
        if not parts:
            return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))
        start = np.concatenate([part.start for part in parts])
        order = np.argsort(start, kind="stable")
        start = start[order]
        reach = np.maximum.accumulate(np.concatenate([part.stop for part in parts])[order])
        first = np.append(True, start[1:] > reach[:-1])[: len(start)]
        last = np.append(first[1:], True)[: len(start)]
        return cls(start[first], reach[last])

    def first_touching(self, start: Int64, stop: Int64) -> Int64:
        """For each of other ranges the number of our first that overlaps it; -1: none."""
        first = np.searchsorted(self.stop, start, side="right")
        begins = np.append(self.start, np.iinfo(np.int64).max)[first]
        return np.where((begins < stop) & (start < stop), first, -1)

    def touch(self, start: int, stop: int) -> bool:
        """Whether one of them overlaps a range."""
        return bool(self.first_touching(np.array([start]), np.array([stop]))[0] >= 0)


def _wrong_rows(
    digests: PieceDigests,
    source: Source,
    progress: Callable[[int, int | None], object] | None,
) -> Iterator[int]:
    """The rows with other bytes; as much is read at a time as hashing does."""
    starts, row = digests.table.start, 0
    while row < len(digests):
        first = int(starts[row])
        stop = max(int(np.searchsorted(starts, first + _AT_ONCE, side="right")) - 1, row + 1)
        end = digests.range(stop - 1).stop
        yield from digests.wrong(slice(row, stop), source.read_up_to(ByteRange(first, end)))
        row = stop
        if progress is not None:
            progress(end, digests.size)


def _outside_of_samples(index: Index, wrong: MergedRanges) -> MergedRanges:
    """Those of the wrong pieces that hold no samples of any fragment, such as its moof."""
    samples = []
    for track in index.tracks:
        rows = track.fragments
        own = ((rows.flags & _VIRTUAL) == 0) & (rows.data_start != NULL)
        samples.append(MergedRanges(rows.data_start[own], rows.data_stop[own]))
    outside = MergedRanges.merged(samples).first_touching(wrong.start, wrong.stop) < 0
    return MergedRanges(wrong.start[outside], wrong.stop[outside])


def _named(
    track: Track, wrong: MergedRanges, headers: MergedRanges
) -> Iterator[tuple[Finding, MergedRanges]]:
    """The fragments of a track with wrong bytes, and which bytes those fragments have."""
    rows = track.fragments
    virtual = (rows.flags & _VIRTUAL) != 0
    has_data = rows.data_start != NULL
    by_box = headers.first_touching(rows.offset, rows.offset + rows.size)
    by_data = wrong.first_touching(rows.data_start, rows.data_stop)
    by_box[virtual], by_data[~has_data] = -1, -1
    shown: list[_Shown] = []
    for row in np.flatnonzero((by_box >= 0) | (by_data >= 0)).tolist():
        box, data = (
            MergedRanges(rows.offset[[row]], (rows.offset + rows.size)[[row]]),
            MergedRanges(rows.data_start[[row]], rows.data_stop[[row]]),
        )
        cts = int(rows.cts_min[row]), int(rows.cts_end[row])
        if virtual[row]:
            touched = _touched_samples(track, row, wrong)
            if touched is not None and not len(touched):
                continue
            if touched is not None:
                data = MergedRanges.merged(
                    [MergedRanges(touched.offset, touched.offset + touched.size)]
                )
                cts = int(touched.cts.min()), int((touched.cts + touched.duration).max())
            shown.append(_Shown(row, cts, data))
            continue
        where = MergedRanges.merged([box, data] if has_data[row] else [box])
        first = min(n for n in wrong.first_touching(where.start, where.stop).tolist() if n >= 0)
        at = max(int(wrong.start[first]), int(where.start[0]))
        text = f"fragment {row} ({_times(track, cts)}) has other bytes than when it was indexed"
        yield Finding("damaged-bytes", text, offset=at, track=track.id), where
    for part in _joined(shown):
        touching = wrong.first_touching(part.where.start, part.where.stop)
        at = max(int(wrong.start[touching[touching >= 0].min()]), int(part.where.start[0]))
        text = f"{_times(track, part.cts)} has other bytes than when it was indexed"
        yield Finding("damaged-bytes", text, offset=at, track=track.id), part.where


class _Shown(NamedTuple):
    """Wrong samples of a progressive file: row, composition times, bytes."""

    row: int
    cts: tuple[int, int]
    where: MergedRanges


def _joined(parts: Sequence[_Shown]) -> Iterator[_Shown]:
    """Parts of rows one after the other as one."""
    held: list[_Shown] = []
    for part in [*parts, None]:
        if held and (part is None or part.row != held[-1].row + 1):
            times = [one.cts for one in held]
            yield _Shown(
                held[0].row,
                (min(begin for begin, _ in times), max(end for _, end in times)),
                MergedRanges.merged([one.where for one in held]),
            )
            held = []
        if part is not None:
            held.append(part)


def _touched_samples(track: Track, row: int, wrong: MergedRanges) -> SampleTable | None:
    """The samples of a row with bytes in wrong ranges; None: the index does not know them."""
    try:
        samples = track.samples_of(row, row + 1)
    except (InexactIndex, LimitExceeded):
        return None
    ends = samples.offset + samples.size
    return samples.rows(wrong.first_touching(samples.offset, ends) >= 0)


def _times(track: Track, cts: tuple[int, int]) -> str:
    """From when to when samples are presented, as a message says it."""
    if NULL in cts or not track.timescale:
        return "at unknown times"
    begin, end = (presentation(tick, track.shift, track.timescale) for tick in cts)
    return f"{begin.seconds:.10g} s to {end.seconds:.10g} s"
