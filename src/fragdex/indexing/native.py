"""The loops over bytes: walking over box headers, and reading many boxes and samples at once.

Each loop exists twice: in C (`native/`), used where a compiler was there at installation, and
in Python (`native_plain`); a property test proves them equal. They know box headers and the places
of integers, and nothing else of the format.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fragdex.indexing.headers import (
    DESCEND,
    DONE,
    PASSED,
    ROW,
    SHAPED,
    WHOLE,
    Extents,
    Int64,
    Kept,
    Mask,
    Programs,
    RowColumns,
    Rows,
    Shaped,
    Sums,
    Walked,
    code,
)
from fragdex.indexing.native_plain import (
    chunk_starts_plain,
    columns_plain,
    extents_plain,
    in_order,
    join_plain,
    join_sync_plain,
    kept_plain,
    places_plain,
    span_plain,
    sums_plain,
    walk_plain,
)

Learn: TypeAlias = Callable[[memoryview], tuple[bytes, bytes, bytes] | None]
"""Bytes of a box → its shape, one of `Programs`; None where it has none."""

MOOF = code("moof")
_PAIRS = Struct("2q").iter_unpack

compiled: Any = None
"""The compiled loops, or None."""
if not os.environ.get("FRAGDEX_PURE_PYTHON"):
    with contextlib.suppress(ImportError):
        compiled = importlib.import_module("fragdex._native")

walks_files = hasattr(compiled, "walk_file")
"""Whether `walk_file` is there: only with the compiled loops, and not on Windows."""


def walk(
    buffer: memoryview,
    start: int = 0,
    max_rows: int = 1 << 15,
    *,
    inside: bool = False,
    shapes: Programs = (),
    learn: Learn | None = None,
) -> Walked:
    """Pass the boxes from `start` on.

    Args:
        max_rows: about how many rows to give at once.
        inside: give the rows inside of fragments as well.
        shapes: of `SHAPED` boxes, to be read in passing; the walk in Python does not.
        learn: tells the shape of a box that has none of those known, which is then read as well;
            None: no more is asked.
    """
    if start >= len(buffer):
        nothing = np.zeros(0, ROW)
        return Walked(nothing, nothing, start, DONE)
    if compiled is None:
        return walk_plain(buffer, start, max_rows, inside)
    descend = DESCEND if inside else b""
    return _walked(
        *compiled.walk(
            *(buffer, start, descend, WHOLE, PASSED, max_rows, SHAPED, shapes, _learner(learn))
        )
    )


def _walked(
    top: bytes, inner: bytes, position: int, status: int, insides: tuple[Any, ...] | None
) -> Walked:
    shaped = Shaped(*insides) if insides is not None else None
    return Walked(np.frombuffer(top, ROW), np.frombuffer(inner, ROW), position, status, shaped)


def _learner(learn: Learn | None) -> Callable[[bytes], tuple[bytes, bytes, bytes] | None] | None:
    return None if learn is None else lambda box: learn(memoryview(box))


def walk_file(
    fd: int,
    start: int,
    stop: int,
    *,
    max_rows: int,
    max_bytes: int,
    probe: int = 0,
    dense: int = 0,
    shapes: Programs = (),
    learn: Learn | None = None,
) -> tuple[Walked, bytearray, int, int]:
    """`walk` by reading, two reads a fragment: where fragments are large this beats mapping.

    Only where `walks_files` says so.

    Args:
        start: of the first header; stop: end of the file.
        max_rows, max_bytes: about how many rows and bytes of `WHOLE` boxes to give at once.
        probe: rows after which the walk stops with `DENSE` where moofs begin at most `dense`
            bytes apart; 0: it never does.
        shapes, learn: as in `walk`.

    Returns: what was met (offsets in the file), the bytes of the `WHOLE` boxes one after the
    other, reads made, bytes read.
    """
    walked, kept, reads, count = compiled.walk_file(
        # A box that a cut file announces may begin after its end.
        *(fd, start, max(start, stop), b"", WHOLE, PASSED, max_rows, max_bytes),
        *(SHAPED, probe, dense, shapes, _learner(learn)),
    )
    return _walked(*walked), kept, reads, count


def columns(
    buffer: memoryview | bytes, offsets: Int64, places: Sequence[tuple[int, np.dtype[Any]]]
) -> Int64:
    """Big-endian integers that stand at the same places in many boxes.

    Args:
        places: (bytes from there, dtype) of each integer.

    Returns: int64 of shape (len(places), len(offsets)). Places must lie inside the buffer
    (ValueError).
    """
    if compiled is not None:
        packed = np.array([(at, d.itemsize, d.kind == "i") for at, d in places], np.int64)
        read = compiled.columns(buffer, np.ascontiguousarray(offsets, np.int64), packed)
        return np.frombuffer(read, np.int64).reshape(len(places), len(offsets))
    return columns_plain(buffer, offsets, places)


def fit(
    buffer: memoryview | bytes,
    offsets: Int64,
    sizes: Int64,
    shapes: Programs,
    learn: Learn | None = None,
) -> Shaped | None:
    """What the programs of their shapes read of many boxes; only with the compiled loops.

    Returns: None where there is no shape. Boxes must lie inside the buffer (ValueError).
    """
    at, lengths = (np.ascontiguousarray(column, np.int64) for column in (offsets, sizes))
    fitted = compiled.fit(buffer, at, lengths, shapes, _learner(learn))
    return None if fitted is None else Shaped(*fitted)


def samples(
    buffer: memoryview | bytes, sizes: Int64, shapes: Programs, slot: int, moofs: Int64, dts: Int64
) -> tuple[Int64, Mask] | None:
    """The samples of one track in fragments of known shapes; only with the compiled loops.

    Args:
        sizes: bytes of each; moofs: where each stands in the file.
        slot: number that programs give to the track.
        dts: decode time of the first sample of each.

    Returns: columns of a sample table from offset to duration, and whether each is a sync sample;
    None where a fragment has none of the shapes, or no samples with rows of the track. Boxes must
    lie inside the buffer (ValueError).
    """
    columns = (np.ascontiguousarray(column, np.int64) for column in (moofs, dts))
    lengths = np.ascontiguousarray(sizes, np.int64)
    written = compiled.samples(buffer, lengths, shapes, slot, *columns)
    return None if written is None else _sample_columns(written)


def _sample_columns(written: bytes | bytearray) -> tuple[Int64, Mask]:
    count = len(written) // 41
    table = np.frombuffer(written, np.int64, 5 * count).reshape(5, count)
    return table, np.frombuffer(written, np.bool_, count, 40 * count)


def simple_samples(
    moov: bytes, at: int, size: int, first: int, stop: int
) -> tuple[Int64, Mask] | None:
    """The samples of a track of a simple file (`simple_files`); only with the compiled loops.

    Args:
        at, size: of the track's stbl in it.

    Returns: as `samples`; None where the tables are not simple, or nothing is compiled.
    """
    written = None if compiled is None else compiled.simple_samples(moov, at, size, first, stop)
    return None if written is None else _sample_columns(written)


def join(
    buffer: memoryview | bytes,
    offsets: Int64,
    sizes: Int64 | int,
    made: bytes = b"",
    base: int = 0,
) -> bytes:
    """The bytes of many runs, one after the other.

    Joined bytes cost less than an index matrix. Runs must lie inside the buffer, which begins at
    the offset `base`, or where their offsets are below 0, in what was made: -1 is its first byte
    (ValueError).
    """
    if compiled is not None:
        widths = np.ascontiguousarray(sizes, np.int64).reshape(-1)
        joined: bytes = compiled.join(
            buffer, np.ascontiguousarray(offsets, np.int64), widths, made, base
        )
        return joined
    return join_plain(buffer, offsets, sizes, made, base)


def span(offsets: Int64, sizes: Int64) -> tuple[int, int, int]:
    """Where runs with offsets from 0 on begin and end, and their bytes; 0, 0, 0: there are none."""
    if compiled is None:
        return span_plain(offsets, sizes)
    offsets, sizes = np.ascontiguousarray(offsets, np.int64), np.ascontiguousarray(sizes, np.int64)
    low, high, count = compiled.span(offsets, sizes)
    return low, high, count


def moofs(
    lead: bytes,
    number: int,
    track: int,
    edges: Sequence[int],
    columns: Sequence[Int64],
    sync: Mask,
    after: tuple[bytes, ...],
) -> tuple[bytes, Int64, Int64]:
    """Fragments of one track; only with the compiled loops.

    Args:
        number: sequence_number of the first, and `track` the track_ID.
        edges: first sample of each, and the end.
        columns: of all samples of the track decode time, duration, size, composition offset, and
            place in the source.
        after: of each what stands after its trun; empty: nothing.

    Returns: the bytes of all moofs and of the headers of their mdats; where each piece of the
    fragments begins, in the source or, below 0, in these bytes (-1 is the first); its size.
    """
    made, pieces = compiled.moofs(
        lead, number, track, np.array(edges, np.int64), *columns, np.ascontiguousarray(sync), after
    )
    start, size = np.frombuffer(pieces, np.int64).reshape(2, -1)
    return made, start, size


def sums(
    buffer: memoryview | bytes,
    at: Int64,
    count: Int64,
    columns: RowColumns,
    durations: Int64,
    first: npt.NDArray[np.uint8],
    rest: npt.NDArray[np.uint8],
) -> Sums:
    """What runs of samples add up to, and their sync samples.

    Args:
        at: where the rows of each run start.
        count: samples of each, 1 at least.
        durations: of each run the duration of its samples, where there is no column of them.
        first, rest: of each run, whether its first sample and the others are wanted as sync
            samples: 0 no, 1 yes, 2 as their flags say.

    Runs must lie inside the buffer; of rows of no bytes no sync samples may be wanted (ValueError).
    """
    if compiled is None:
        return sums_plain(buffer, at, count, columns, durations, first, rest)
    at, count, durations = (np.ascontiguousarray(c, np.int64) for c in (at, count, durations))
    first, rest = (np.ascontiguousarray(c, np.uint8) for c in (first, rest))
    summed, points = compiled.sums(
        buffer, at, count, np.array(columns, np.int64), durations, first, rest
    )
    size, duration, cts_min, cts_end, negative = _table(summed, 5)
    return Sums(size, duration, cts_min, cts_end, negative, _table(points, 6)[:4])


def chunk_starts(
    rows: memoryview | bytes, stride: int, first: int, each: int, into: Int64
) -> int | None:
    """Which sample each chunk begins with, where rows say it for chunks that hold equally many.

    Args:
        rows: of `stride` bytes each, one at least.
        first: place in a row of the 32-bit number, from 1, of the first chunk that it holds for;
            the first row holds for chunks before it, too.
        each: place of how many samples are in each of these chunks.
        into: takes the number, from 0, of each chunk's first sample.

    Returns: samples of all chunks; None where rows fall back, then `into` says nothing. Rows must
    be whole and columns lie inside of them (ValueError).
    """
    if compiled is None:
        return chunk_starts_plain(rows, stride, first, each, into)
    count: int | None = compiled.chunk_starts(rows, stride, first, each, into)
    return count


def places(size: Int64, chunk_start: Int64, chunk_offset: Int64, first: int, into: Int64) -> None:
    """Where samples lie that stand one after the other in chunks.

    Args:
        size: bytes of each sample from number 0 on, or of all of them (one element).
        chunk_start: number of the first sample of each chunk, rising or equal.
        chunk_offset: where each chunk starts.
        first: number of the first sample that is requested.
        into: takes the place of it and of those after it; their number says how many.

    Chunks must begin at or before the first sample and before the last one, and samples have a
    size (ValueError). Places wrap round at 64 bits.
    """
    if compiled is None:
        places_plain(size, chunk_start, chunk_offset, first, into)
        return
    size, chunk_start, chunk_offset = (
        np.ascontiguousarray(c, np.int64) for c in (size, chunk_start, chunk_offset)
    )
    compiled.places(size, chunk_start, chunk_offset, first, into)


def extents(
    sizes: npt.NDArray[np.uint32] | None,
    each: int,
    chunks: tuple[Int64, Int64],
    durations: tuple[Int64, Int64],
    offsets: tuple[Int64, Int64] | None,
    starts: Int64,
    count: int,
) -> Extents:
    """Where stretches of samples lie, and when they are shown.

    Args:
        sizes: bytes of each sample, as big-endian words (`>u4`); None: each has `each` bytes.
        chunks: number of the first sample of each chunk, rising or equal, and where it starts.
        durations, offsets: where runs of equal ones end (exclusive), rising or equal, and their
            values; durations may be below 0. None: no sample has an offset.
        starts: number of the first sample of each stretch, rising from 0; a stretch ends where
            the next one begins.
        count: samples of all.

    Each sample must have a size, a chunk and a duration (ValueError). Sums wrap round at 64 bits.
    """
    if compiled is None:
        return extents_plain(sizes, each, chunks, durations, offsets, starts, count)
    into = np.empty((len(Extents._fields), len(starts)), np.int64)
    words = b"" if sizes is None else np.ascontiguousarray(sizes, ">u4")
    shifts = (_NONE, _NONE) if offsets is None else offsets
    columns = (np.ascontiguousarray(c, np.int64) for c in (*chunks, *durations, *shifts, starts))
    compiled.extents(words, each, *columns, count, into)
    return Extents(*into)


_NONE = np.zeros(0, np.int64)


def kept(top: Rows) -> Kept:
    """The boxes among some rows that are kept whole."""
    if compiled is None:
        return kept_plain(top)
    places, others, whole_bytes, header_bytes = compiled.kept(np.ascontiguousarray(top).data, MOOF)
    offsets, sizes = _table(places, 2)
    noted = list(_PAIRS(others)) if others else []
    return Kept(offsets, sizes, noted, whole_bytes, header_bytes)


def lay_out(tops: Sequence[Rows], moof: int, mdat: int, lead: bytes) -> tuple[Int64, Int64]:
    """Where fragments and media data lie; only with the compiled loops.

    Args:
        tops: rows of top-level boxes in file order.
        moof, mdat: types of boxes; lead: types of those that introduce a moof, one after the
            other.

    Returns: columns of the moofs (place, start and stop of the fragment, end of the moof, rows of
    the first and the last mdat that are its own, payload of the last one), and of the mdats
    (payload), as `Layout` of `positions` names them.
    """
    rows = tuple([np.ascontiguousarray(top).data for top in tops])
    moofs, mdats = compiled.lay_out(rows, moof, mdat, lead)
    return _table(moofs, 8), _table(mdats, 2)


def settle(
    trafs: Int64,
    points: Int64,
    layout: Int64,
    state: tuple[int, int, int, int],
    table: Int64,
    table_start: int,
    sync: Int64,
    sync_start: int,
) -> tuple[int, int, int, int] | None:
    """The tables of one track whose trafs are regular; only with the compiled loops.

    Args:
        trafs, points: the rows of a `PlainTrack`.
        layout: columns of the moofs, as `lay_out` gives them.
        state: samples and rows of the track before, decode time of the last traf with a tfdt of
            32 bits, and of the last one that has samples; -2^63: there is none.
        table, sync: take the columns of a fragment table but for its flags, and those of a sync
            table, from these rows on; there must be room (ValueError).

    Returns: the decode time after the last sample, samples so far, and the other two of `state`;
    None where something is not regular, then what was written says nothing.
    """
    settled: tuple[int, int, int, int] | None = compiled.settle(
        trafs, points, layout, *state, table, table_start, sync, sync_start
    )
    return settled


def join_sync(rows: Int64) -> Int64:
    """Runs of sync samples in fewer rows: those that continue each other become one.

    Args:
        rows: the columns of a `SyncTable`, sorted by composition time; they may be written to.
    """
    if compiled is None:
        return join_sync_plain(rows)
    return _some(rows, compiled.join_sync(rows, False))


def join_ordered_sync(rows: Int64) -> Int64 | None:
    """`join_sync` where no run falls in time and none begins before the one before it ends.

    Returns: None where that is not so; then nothing was written.
    """
    if compiled is None:
        return join_sync_plain(rows) if in_order(rows) else None
    left = compiled.join_sync(rows, True)
    return None if left is None else _some(rows, left)


def _some(rows: Int64, left: int) -> Int64:
    # Where most rows went, their memory goes, too.
    return rows[:, :left] if 2 * left > rows.shape[1] else rows[:, :left].copy()


def _table(read: bytes | bytearray, rows: int) -> Int64:
    return np.frombuffer(read, np.int64).reshape(rows, -1 if read else 0)
