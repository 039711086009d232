"""The loops of `native` in Python, where no compiled ones are at hand."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fragdex.box_header import read_header
from fragdex.indexing.headers import (
    DESCEND,
    DONE,
    FULL,
    MALFORMED,
    NO_SHAPE,
    PARTIAL,
    PASSED,
    ROW,
    TO_END,
    WHOLE,
    Extents,
    Fits,
    Int64,
    Kept,
    Mask,
    Packed,
    RowColumns,
    Rows,
    Sums,
    Walked,
    code,
)


def _codes(packed: bytes) -> frozenset[int]:
    return frozenset(code(packed[i : i + 4].decode()) for i in range(0, len(packed), 4))


_CONTAINERS, WHOLE_CODES, _PASSED = map(_codes, (DESCEND, WHOLE, PASSED))
_MOOF, _MDAT = code("moof"), code("mdat")
MAX_DEPTH = 8
"""Containers inside containers; moof and traf make two."""


def join_plain(
    buffer: memoryview | bytes,
    offsets: Int64,
    sizes: Int64 | int,
    made: bytes = b"",
    base: int = 0,
) -> bytes:
    """`join` in Python."""
    view = memoryview(buffer)
    widths = np.broadcast_to(np.asarray(sizes, np.int64), offsets.shape)
    is_made = offsets < 0
    room = np.where(is_made, len(made), len(view))
    starts = np.where(is_made, ~offsets, offsets - base)
    if len(offsets) and (min(widths.min(), starts.min()) < 0 or (starts + widths > room).any()):
        raise ValueError("join: a run lies outside the buffer")
    runs = zip(is_made.tolist(), starts.tolist(), (starts + widths).tolist(), strict=True)
    return b"".join([made[a:b] if own else view[a:b] for own, a, b in runs])


def span_plain(offsets: Int64, sizes: Int64) -> tuple[int, int, int]:
    """`native.span` in Python."""
    inside = offsets >= 0
    if not inside.any():
        return 0, 0, 0
    offsets, sizes = offsets[inside], sizes[inside]
    return int(offsets.min()), int((offsets + sizes).max()), int(sizes.sum())


_HEAD = Struct(">II").unpack_from
_UUID = code("uuid")


def header_at(buffer: memoryview, at: int, stop: int) -> tuple[int, int, int, int]:
    """Status, size, type and header length of the box at `at`."""
    if stop - at >= 8:
        short, kind_of_short = _HEAD(buffer, at)
        if short >= 8 and kind_of_short != _UUID:
            return DONE, short, kind_of_short, 8
    header = read_header(buffer, at, stop)
    if header is None or header.form == "cut":
        return PARTIAL, 0, 0, 0
    kind, size, length, form = header
    if size >= 2**63 or (size < length and form != "to_end"):
        return MALFORMED, 0, 0, 0
    return DONE, size, int.from_bytes(kind, "big"), length


def walk_plain(buffer: memoryview, start: int, max_rows: int, inside: bool = False) -> Walked:
    """`walk` in Python."""
    starts: list[int] = []
    odd: dict[int, tuple[int, int]] = {}
    at, stop, status, total, behind_whole = start, len(buffer), DONE, 0, False
    while at < stop:
        # Not after a fragment's moof: what belongs to it is better met in one stretch.
        if total >= max_rows and not behind_whole:
            status = FULL
            break
        if not (behind_whole or inside):
            before = len(starts)
            at = _pairs(buffer, at, starts, max_rows - total)
            total += len(starts) - before
            if at >= stop or total >= max_rows:
                continue
        status, size, kind, length = header_at(buffer, at, stop)
        if status == DONE and not size:
            status = TO_END
        if status != DONE:
            break
        behind_whole = kind in WHOLE_CODES
        if behind_whole and size > stop - at:
            status = PARTIAL
            break
        total += 1 + (5 if inside and kind == _MOOF else 0)
        if length > 8 or size >= 1 << 32:
            odd[len(starts)] = size, length
        starts.append(at)
        at += size
    top = _rows(buffer, starts, odd)
    moofs = np.flatnonzero(top["type"] == _MOOF)
    if not len(moofs) or not inside:
        return Walked(top, np.zeros(0, ROW), at, status)
    rows = [np.zeros(0, ROW)]
    for number in moofs.tolist():
        within = inside_of(buffer, int(top["offset"][number]), int(top["size"][number]))
        top["damaged"][number] = within is None
        if within is not None:
            rows.append(np.array(within.rows, ROW))
    return Walked(top, np.concatenate(rows), at, status)


def _pairs(buffer: memoryview, at: int, starts: list[int], room: int) -> int:
    """Pass moofs that a mdat follows, both with short sizes; returns where something else stands.

    Nearly all of a fragmented file is this; whatever else there is, is left to the caller.
    """
    last, full, note = len(buffer) - 8, len(starts) + room, starts.append
    while at <= last and len(starts) < full:
        size, kind = _HEAD(buffer, at)
        behind = at + size
        if kind != _MOOF or size < 8 or behind > last:
            break
        size, kind = _HEAD(buffer, behind)
        if kind != _MDAT or size < 8:
            break
        note(at)
        note(behind)
        at = behind + size
    return at


def _rows(buffer: memoryview, starts: list[int], odd: dict[int, tuple[int, int]]) -> Rows:
    """Rows of the boxes at these places; `odd`: size and header length of those not plain."""
    top = np.zeros(len(starts), ROW)
    if not starts:
        return top
    offsets = np.array(starts, np.int64)
    heads = _table(buffer, offsets, 8).view(">u4")
    top["offset"], top["size"], top["type"], top["header"] = offsets, heads[:, 0], heads[:, 1], 8
    for row, (size, length) in odd.items():
        top["size"][row], top["header"][row] = size, length
    top["whole"] = np.isin(top["type"], list(WHOLE_CODES))
    return top


def kept_plain(top: Rows) -> Kept:
    """`kept` in Python."""
    whole = np.flatnonzero(top["whole"])
    offsets, sizes, types = (top[name][whole] for name in ("offset", "size", "type"))
    where = np.flatnonzero(types != _MOOF)
    others = list(zip(where.tolist(), types[where].tolist(), strict=True))
    headers = top["header"].astype(np.int64)
    return Kept(
        offsets, sizes, others, int(sizes.sum()), int(headers.sum()) - int(headers[whole].sum())
    )


def columns_plain(
    buffer: memoryview | bytes, offsets: Int64, places: Sequence[tuple[int, np.dtype[Any]]]
) -> Int64:
    """`columns` in Python."""
    reach = max((at + dtype.itemsize for at, dtype in places), default=0)
    return _fields(_table(buffer, offsets, reach), places)


def _table(buffer: memoryview | bytes, offsets: Int64, size: int) -> npt.NDArray[np.uint8]:
    """Runs of one size as the rows of a table."""
    room = len(buffer) - size
    if len(offsets) and (offsets.min() < 0 or offsets.max() > room):
        raise ValueError("a run lies outside the buffer")
    if not size or not len(offsets):
        return np.zeros((len(offsets), size), np.uint8)
    # Every run of this size in the buffer, seen as one item each: numpy copies those requested.
    every = np.ndarray(room + 1, np.dtype((np.void, size)), buffer, 0, (1,))
    return every[offsets].view(np.uint8).reshape(len(offsets), size)


def _fields(table: npt.NDArray[np.uint8], places: Sequence[tuple[int, np.dtype[Any]]]) -> Int64:
    out = np.empty((len(places), len(table)), np.int64)
    if not len(table):
        return out
    for row, (at, dtype) in zip(out, places, strict=True):
        row[:] = np.ndarray(len(table), dtype, table, at, table.strides[:1])
    return out


def fit_plain(buffer: memoryview | bytes, offsets: Int64, sizes: Int64, shapes: Packed) -> Fits:
    """`fit` in Python."""
    if len(offsets) and (
        min(offsets.min(), sizes.min()) < 0 or (offsets + sizes).max() > len(buffer)
    ):
        raise ValueError("fit: a box lies outside the buffer")
    which = np.full(len(offsets), NO_SHAPE, np.uint8)
    cells: list[Int64] = []
    tables: dict[int, tuple[Int64, npt.NDArray[np.uint8]]] = {}
    for number, (template, mask, packed) in enumerate(shapes):
        size = len(template)
        places = np.frombuffer(packed, np.int64).reshape(-1, 3).tolist()
        if any(at < 0 or at + width > size for at, width, _ in places):
            raise ValueError("fit: an impossible place")
        if size not in tables:
            # Each is copied together once, then thinned out as shapes are found in it.
            sized = np.flatnonzero(sizes == size)
            tables[size] = sized, _table(buffer, offsets[sized], size)
        sized, table = tables[size]
        same = _alike(table, template, mask)
        which[sized[same]] = number
        mine = table if same.all() else table[same]
        tables[size] = sized[~same], table[~same]
        dtypes = [
            (at, np.dtype(f">{'i' if signed else 'u'}{width}")) for at, width, signed in places
        ]
        cells.append(_fields(mine, dtypes))
    return Fits(which, cells)


def _alike(table: npt.NDArray[np.uint8], template: bytes, mask: bytes) -> Mask:
    """Which rows have the template's bits wherever the mask is set."""
    width = next(w for w in (8, 4, 2, 1) if len(template) % w == 0)
    rows = table.view(f"u{width}")
    wanted, bits = np.frombuffer(template, f"u{width}"), np.frombuffer(mask, f"u{width}")
    same = np.ones(len(rows), np.bool_)
    for word in np.flatnonzero(bits).tolist():
        same &= (rows[:, word] ^ wanted[word]) & bits[word] == 0
    return same


class Inside(NamedTuple):
    """What stands inside of one fragment.

    Attributes:
        rows: fields of `ROW` of each box, in file order; not of `PASSED`.
        deciding: (start, stop) of bytes that decide where boxes are, from the moof's start.
    """

    rows: list[tuple[int, int, int, int, int, bool, bool]]
    deciding: list[tuple[int, int]]


def inside_of(buffer: memoryview, offset: int, size: int) -> Inside | None:
    """The boxes inside a moof, or None where a child breaks its parent."""
    inside = Inside([], [])
    status, _, _, header = header_at(buffer, offset, offset + size)
    inside.deciding.append((0, header))
    whole = status == DONE and _note_inside(
        inside, buffer, offset, (offset + header, offset + size), 1
    )
    return inside if whole else None


def _note_inside(
    inside: Inside, buffer: memoryview, offset: int, span: tuple[int, int], depth: int
) -> bool:
    """Note the boxes of a span; False where one breaks the rules."""
    at, stop = span
    while stop - at >= 8:
        status, length, kind, header = header_at(buffer, at, stop)
        inside.deciding.append((at - offset, at - offset + max(header, 8)))
        if status == DONE and length == 0 and kind == 0:
            return True  # padding of zero bytes, as QuickTime's terminator
        if status != DONE or length == 0 or length > stop - at:
            return False
        if kind not in _PASSED:
            inside.rows.append((at, length, kind, header, depth, False, False))
        if depth < MAX_DEPTH and kind in _CONTAINERS:
            inner = at + header, at + length
            if not _note_inside(inside, buffer, offset, inner, depth + 1):
                return False
        at += length
    return True


MAX_STRIDE = 1 << 16
"""Bytes of a row; an stsc's have 12, a trun's 16 at most."""


def chunk_starts_plain(
    rows: memoryview | bytes, stride: int, first: int, each: int, into: Int64
) -> int | None:
    """`native.chunk_starts` in Python."""
    count, chunks = len(rows) // stride if stride else 0, len(into)
    if not 4 <= stride <= MAX_STRIDE or not count or len(rows) % stride:
        raise ValueError("chunk_starts: impossible rows")
    if not 0 <= first <= stride - 4 or not 0 <= each <= stride - 4:
        raise ValueError("chunk_starts: a column lies outside of its row")

    def column(place: int) -> npt.NDArray[Any]:
        return np.ndarray(count, ">u4", rows, place, (stride,)).astype(np.int64)

    begin = column(first)
    if (begin[1:] < begin[:-1]).any():
        return None
    begin -= 1
    begin[0] = 0
    counts = np.repeat(column(each), _gaps(np.clip(begin, 0, chunks), chunks))
    np.cumsum(counts, out=into)
    total = int(into[-1]) if chunks else 0
    into -= counts
    return total


def places_plain(
    size: Int64, chunk_start: Int64, chunk_offset: Int64, first: int, into: Int64
) -> None:
    """`native.places` in Python."""
    stop = first + len(into)
    if len(chunk_start) != len(chunk_offset):
        raise ValueError("places: arguments differ in length")
    if first < 0 or stop >= 2**63 or (len(size) != 1 and len(size) < stop):
        raise ValueError("places: samples without a size")
    if not len(chunk_start) or not 0 <= chunk_start[0] <= first or chunk_start[-1] >= stop:
        raise ValueError("places: samples without a chunk")
    if (chunk_start[1:] < chunk_start[:-1]).any():
        raise ValueError("places: chunks fall back")
    if len(size) == 1:
        base = chunk_offset - chunk_start * size[0]
        running = np.arange(first, stop)
        running *= size[0]
    else:
        begin = int(chunk_start[0])
        running = np.cumsum(size[begin:stop])
        running -= size[begin:stop]
        base = chunk_offset - running[chunk_start - begin]
        running = running[first - begin :]
    np.add(np.repeat(base, _gaps(np.maximum(chunk_start, first), stop)), running, out=into)


def extents_plain(
    sizes: npt.NDArray[np.uint32] | None,
    each: int,
    chunks: tuple[Int64, Int64],
    durations: tuple[Int64, Int64],
    offsets: tuple[Int64, Int64] | None,
    starts: Int64,
    count: int,
) -> Extents:
    """`native.extents` in Python."""
    (chunk_start, chunk_offset), (stops, values) = chunks, durations
    shifts = (stops[:0], values[:0]) if offsets is None else offsets
    if len(chunk_start) != len(chunk_offset) or len(stops) != len(values):
        raise ValueError("extents: arguments differ in length")
    if count < 0 or (sizes is not None and len(sizes) < count):
        raise ValueError("extents: samples without a size")
    if not len(starts) or not count:
        if len(starts) or count:
            raise ValueError("extents: stretches or chunks do not rise from 0")
        return Extents(*np.zeros((6, 0), np.int64))
    chunk_start = chunk_start[: int(np.searchsorted(chunk_start, count))]
    rises = (np.diff(starts) > 0).all() and (np.diff(chunk_start) >= 0).all()
    if not rises or starts[0] or starts[-1] >= count or not len(chunk_start) or chunk_start[0]:
        raise ValueError("extents: stretches or chunks do not rise from 0")
    if not len(stops) or stops.max() < count or (len(shifts[0]) and shifts[0].max() < count):
        raise ValueError("extents: samples without a duration or offset")
    begin, counts, first = _parts(starts, chunk_start, count)
    if sizes is None:
        size = counts * each
    else:
        size = np.add.reduceat(sizes[:count], begin, dtype=np.int64)
    chunk = np.searchsorted(chunk_start, begin, side="right") - 1
    running = np.cumsum(size) - size
    place = chunk_offset[chunk] + running - running[np.searchsorted(begin, chunk_start[chunk])]
    data = np.minimum.reduceat(place, first), np.maximum.reduceat(place + size, first)
    begin, counts, first = _parts(starts, np.concatenate([stops, shifts[0]]), count)
    step = values[np.searchsorted(stops, begin, side="right")]
    lasts = step * counts
    dts = np.cumsum(lasts) - lasts
    cts = dts
    if len(shifts[0]):
        cts = dts + shifts[1][np.searchsorted(shifts[0], begin, side="right")]
    return Extents(
        *data,
        # Samples that go backwards: each ends no earlier than it begins.
        np.minimum.reduceat(np.where(step < 0, cts + lasts - step, cts), first),
        np.maximum.reduceat(np.where(step < 0, cts, cts + lasts), first),
        dts[first],
        np.add.reduceat(lasts, first),
    )


def _parts(starts: Int64, edges: Int64, count: int) -> tuple[Int64, Int64, Int64]:
    """First sample and samples of what starts and edges part, and the first part of each start."""
    cuts = np.sort(np.concatenate([starts, edges]))
    begin = cuts[(np.diff(cuts, prepend=-1) > 0) & (cuts < count)]
    return begin, np.diff(begin, append=count), np.searchsorted(begin, starts)


def join_sync_plain(rows: Int64) -> Int64:
    """`native.join_sync` in Python."""
    if rows.shape[1] > 1 and (rows[_COUNT] == 1).any():
        rows = _progressions(rows)
    return _longest(rows) if rows.shape[1] > 1 else rows


_CTS, _DTS, _STEP, _COUNT, _SAMPLE, _SAMPLE_STEP = range(6)


def in_order(rows: Int64) -> bool:
    """Whether no run of sync samples falls in time, and none begins before the last one ends."""
    last = rows[_CTS] + (rows[_COUNT] - 1) * rows[_STEP]
    return not bool((rows[_STEP] < 0).any() or (last[:-1] > rows[_CTS][1:]).any())


def _progressions(rows: Int64) -> Int64:
    """Join single samples that are evenly spaced in time and number."""
    cts, dts, sample = (np.diff(rows[column]) for column in (_CTS, _DTS, _SAMPLE))
    alone = rows[_COUNT] == 1
    # Times advance alike in both, or the run cannot be written with one step.
    # Numbers fall only where decode times fall back: those samples stay rows of their own.
    even = (cts == dts) & (cts > 0) & (sample > 0) & alone[1:] & alone[:-1]
    same = (cts[1:] == cts[:-1]) & (sample[1:] == sample[:-1]) & even[1:] & even[:-1]
    # A stretch of equal differences i covers rows i + 1, and the very first also row 0.
    first = np.flatnonzero(np.concatenate([[True], ~same]))
    length = np.diff(np.append(first, len(cts)))
    heads = np.append(0, first + 1)
    covered = np.append(1, length)
    if even[0]:
        heads, covered = np.delete(heads, 1), covered[1:]
        covered[0] += 1
    firsts, many = rows[:, heads], covered > 1
    firsts[_COUNT][many] = covered[many]
    firsts[_STEP][many] = cts[heads[many]]
    firsts[_SAMPLE_STEP][many] = sample[heads[many]]
    return firsts


_HALF, _WORD = 2**63, 2**64 - 1


def _longest(rows: Int64) -> Int64:
    """Runs as long as they can be, from the first sample on: of single ones there are no fewer.

    Differences wrap round at 64 bits.
    """
    joined: list[list[int]] = []
    cts = dts = step = count = sample = sample_step = 0
    for row in rows.T.tolist():
        next_cts, next_dts, next_step, more, next_sample, next_sample_step, _ = row
        ahead, samples = (next_cts - cts) & _WORD, (next_sample - sample) & _WORD
        by, samples_by = step, sample_step
        if count == 1:  # a single sample has any step
            by, samples_by = ahead, samples
        if (
            0 < by < _HALF > samples_by > 0
            and ahead == (next_dts - dts) & _WORD == (count * by) & _WORD
            and samples == (count * samples_by) & _WORD
            and (more == 1 or (next_step, next_sample_step) == (by, samples_by))
        ):
            step, sample_step, count = by, samples_by, count + more
            joined[-1][_STEP], joined[-1][_COUNT], joined[-1][_SAMPLE_STEP] = by, count, samples_by
        else:
            cts, dts, step, count, sample, sample_step, _ = row
            joined.append(row)
    return np.ascontiguousarray(np.array(joined, np.int64).T)


def _gaps(starts: Int64, stop: int) -> Int64:
    """From each start to the next, and from the last one to `stop`."""
    gaps = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=gaps[:-1])
    gaps[-1:] = stop - starts[-1:]
    return gaps


_Flags = npt.NDArray[np.uint8]


class _Spans:
    """The samples of several runs, one run after the other; none is empty.

    Args:
        count: samples of each run.
        durations: big-endian durations of all samples, or None where the default holds.
        default: default duration of each run.
        offsets: big-endian composition offsets, or None.
        is_signed: whether durations may be below 0; the default ones are as they are meant.

    Where every run has the same number of samples, tables are seen as one row a run.
    """

    def __init__(
        self,
        count: Int64,
        durations: npt.NDArray[Any] | None,
        default: Int64,
        offsets: npt.NDArray[Any] | None,
        *,
        is_signed: bool,
    ) -> None:
        self.count, self.default = count, default
        self.starts = np.cumsum(count)
        self.starts -= count
        self.each = int(count[0]) if (count == count[0]).all() else 0
        self.durations: Int64 | None = None
        self.backward = int(count[default < 0].sum()) if durations is None and is_signed else 0
        if durations is not None:
            native = durations.astype(np.uint32)
            self.durations = (native.view(np.int32) if is_signed else native).astype(np.int64)
            self.backward = int((self.durations < 0).sum()) if is_signed else 0
        self.offsets: Int64 | None = None
        self.negative = np.zeros(len(count), np.int64)
        self._dts: Int64 | None = None
        if offsets is not None:
            signed = offsets.astype(np.uint32).view(np.int32)
            self.offsets = signed.astype(np.int64)
            below = signed < 0
            if below.any():
                self.negative = self._added(below)

    def total(self) -> Int64:
        """Sum of the durations of each run."""
        if self.durations is None:
            return self.default * self.count
        return self._added(self.durations)

    def added(self, column: npt.NDArray[Any]) -> Int64:
        """Sum of each run's samples of a big-endian column."""
        return self._added(column.astype(np.uint32))

    def _added(self, native: npt.NDArray[Any]) -> Int64:
        """A run never reaches 2^31 rows of u4: int64 cannot overflow."""
        if self.each:
            total: Int64 = native.reshape(-1, self.each).sum(axis=1, dtype=np.int64)
            return total
        return np.add.reduceat(native, self.starts, dtype=np.int64)

    def _decode_times(self) -> Int64:
        """Decode time of each sample, from its run's start."""
        if self._dts is None:
            if self.durations is not None:
                running = np.cumsum(self.durations)
                running -= self.durations
                running -= np.repeat(running[self.starts], self.count)
            elif self.each:
                running = np.multiply.outer(self.default, np.arange(self.each)).ravel()
            else:
                running = np.arange(int(self.count.sum()))
                running -= np.repeat(self.starts, self.count)
                running *= np.repeat(self.default, self.count)
            self._dts = running
        return self._dts

    def edges(self, total: Int64) -> tuple[Int64, Int64]:
        """Least composition time, and greatest composition time plus duration, of each run."""
        if self.offsets is None and not self.backward:
            return np.zeros(len(total), np.int64), total
        if self.offsets is None and self.durations is None:
            # Evenly, forwards or backwards, without a byte of the file for each sample.
            before = np.minimum((self.count - 1) * self.default, 0)
            return before, np.where(self.default < 0, 0, total)
        cts = self._decode_times()
        cts = cts + self.offsets if self.offsets is not None else cts.copy()
        least = self._picked(np.minimum, cts)
        if self.durations is not None:
            cts += np.maximum(self.durations, 0) if self.backward else self.durations
            return least, self._picked(np.maximum, cts)
        return least, self._picked(np.maximum, cts) + np.maximum(self.default, 0)

    def _picked(self, pick: np.ufunc, values: Int64) -> Int64:
        if self.each:
            picked: Int64 = pick.reduce(values.reshape(-1, self.each), axis=1)
            return picked
        return pick.reduceat(values, self.starts)

    def points(self, flags: npt.NDArray[Any] | None, mask: int, first: _Flags, rest: _Flags) -> Any:
        """The sync samples: rows of run, index, decode and composition time."""
        if not first.any() and not rest.any():
            return np.zeros((4, 0), np.int64)
        if not rest.any() and (flags is None or not (first == 2).any()):
            run = np.flatnonzero(first == 1)
            return self._described(self.starts[run], np.zeros_like(run), run)
        stated = np.repeat(rest, self.count)
        stated[self.starts] = first
        is_sync = stated == 1
        if flags is not None:
            is_sync |= (stated == 2) & ((flags.astype(np.uint32) & mask) == 0)
        where = np.flatnonzero(is_sync)
        if self.each:
            run = where // self.each
        else:
            run = np.searchsorted(self.starts, where, side="right") - 1
        return self._described(where, where - self.starts[run], run)

    def _described(self, where: Int64, index: Int64, run: Int64) -> Int64:
        """Samples of these numbers among the samples of all runs, and in their runs."""
        if self.durations is None:
            dts = index * self.default[run]
        else:
            dts = self._decode_times()[where]
        cts = dts if self.offsets is None else dts + self.offsets[where]
        return np.stack([run, index, dts, cts])


def sums_plain(
    buffer: memoryview | bytes,
    at: Int64,
    count: Int64,
    columns: RowColumns,
    durations: Int64,
    first: _Flags,
    rest: _Flags,
    *,
    is_signed: bool = False,
) -> Sums:
    """`native.sums` in Python.

    Args:
        is_signed: durations of 2^31 and more are below 0; a sample ends no earlier than it begins.
    """
    _refuse(len(buffer), at, count, columns, durations, first, rest)
    if not len(at):
        nothing = np.zeros(0, np.int64)
        return Sums(nothing, nothing, nothing, nothing, nothing, np.zeros((4, 0), np.int64))
    table = np.frombuffer(join_plain(buffer, at, count * columns.stride), np.uint8)

    def column(place: int) -> npt.NDArray[Any] | None:
        if place < 0:
            return None
        rows = len(table) // columns.stride
        return np.ndarray(rows, ">u4", table, place, (columns.stride,))

    spans = _Spans(
        count,
        column(columns.duration),
        durations,
        column(columns.offset),
        is_signed=is_signed,
    )
    sizes = column(columns.size)
    total = spans.total()
    cts_min, cts_end = spans.edges(total)
    return Sums(
        np.zeros(len(at), np.int64) if sizes is None else spans.added(sizes),
        total,
        cts_min,
        cts_end,
        spans.negative,
        spans.points(column(columns.flags), columns.non_sync, first, rest),
    )


def _refuse(
    available: int,
    at: Int64,
    count: Int64,
    columns: RowColumns,
    durations: Int64,
    first: _Flags,
    rest: _Flags,
) -> None:
    stride, *places, _ = columns
    if any(len(column) != len(at) for column in (count, durations, first, rest)):
        raise ValueError("sums: arguments differ in length")
    if not 0 <= stride <= MAX_STRIDE or any(p != -1 and not 0 <= p <= stride - 4 for p in places):
        raise ValueError("sums: an impossible row")
    if len(at) and (count.min() < 1 or at.min() < 0 or at.max() > available):
        raise ValueError("sums: a run lies outside the buffer")
    if stride and (count > (available - at) // stride).any():
        raise ValueError("sums: a run lies outside the buffer")
    if not stride and (first.any() or rest.any()):
        raise ValueError("sums: samples without rows are not told apart")
