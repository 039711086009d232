"""The writer of fragments: moofs around the samples of tracks, each with its mdat.

One moof for all tracks of a fragment, a traf for each, then one mdat. Values that all samples share
stand in the tfhd, the others in rows of the trun; which these are is decided for a whole track, so
that the size of a moof follows from how many samples it has. Positions count from the moof
(default-base-is-moof), so that fragments can be moved.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fragdex.boxes.fragments import (
    DATA_OFFSET,
    DEFAULT_BASE_IS_MOOF,
    DEFAULT_SAMPLE_DURATION,
    DEFAULT_SAMPLE_FLAGS,
    DEFAULT_SAMPLE_SIZE,
    FIRST_SAMPLE_FLAGS,
    SAMPLE_COMPOSITION_TIME_OFFSET,
    SAMPLE_DESCRIPTION_INDEX,
    SAMPLE_DURATION,
    SAMPLE_FLAGS,
    SAMPLE_SIZE,
)
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError
from fragdex.fragments.table import Int64
from fragdex.muxing.census import BoxKind
from fragdex.muxing.groups import Grouping
from fragdex.muxing.plan import PlannedTrack
from fragdex.muxing.protection import Protected
from fragdex.muxing.view import Block, Scattered, SourceRange, size_of

SYNC_FLAGS, OTHER_FLAGS = 0x02000000, 0x01010000
"""sample_depends_on 2 (on none), and 1 with sample_is_non_sync_sample (8.8.3.1)."""
_WIDE: Final = 1 << 32
_EVEN_SYNC, _FIRST_SYNC, _NO_SYNC, _MIXED = range(4)
"""Which samples of a fragment are sync: all, the first alone, none, or as its rows say."""
_MOOF, _TRAF, _TFDT = 24, 8, 20
"""Bytes of a moof with its mfhd, of a traf's header, of a tfdt of version 1."""


class Fragments:
    """Fragments of some tracks.

    Args:
        media: the tracks; those that have no samples in a fragment are not in it.
        edges: of each track, the first sample of each fragment, and the end; equally many.
        descriptions: of each track the sample_description_index of its samples, or None: 1.
        lead: bytes in front of each fragment.
        protection: of each track what decrypts its samples, or None; None: nothing does.
        explicit: whether each value stands in the row of its sample, for readers that know no
            defaults.
        begins: decode time at which the first fragment says that it begins, before its samples do;
            None: with them. Players that take it for the time of the fragment are right then.
        groups: of each track the groups of its samples.
        events: what stands in front of fragments besides, by their numbers.

    Attributes:
        sizes: int64 bytes of each fragment, with what leads it.

    Raises:
        BuildError: a value does not fit into a fragment.
    """

    def __init__(
        self,
        media: Sequence[PlannedTrack],
        edges: Sequence[Int64],
        descriptions: Sequence[Int64 | None],
        lead: bytes = b"",
        protection: Sequence[Protected | None] | None = None,
        begins: int | None = None,
        *,
        explicit: bool = False,
        groups: Sequence[Sequence[Grouping]] | None = None,
        events: Mapping[int, Sequence[Block]] | None = None,
    ) -> None:
        keys = [None] * len(media) if protection is None else protection
        grouped = [()] * len(media) if groups is None else groups
        columns = zip(media, edges, descriptions, keys, grouped, strict=True)
        self._tracks = [_Track(*one, explicit) for one in columns]
        self._lead = lead
        self._events = {} if events is None else events
        self._empty = b"" if begins is None else _empty(media[0].track.id, begins)
        payload = sum(track.payload for track in self._tracks)
        self.payload: Int64 = np.asarray(payload, np.int64)
        self._header = np.where(self.payload + 8 >= _WIDE, 16, 8)
        boxes = _MOOF + sum(track.boxes for track in self._tracks)
        self._moof: Int64 = np.asarray(boxes, np.int64)
        self.sizes: Int64 = len(lead) + self._moof + self._header + self.payload
        self.sizes[:1] += len(self._empty)
        for number, blocks in self._events.items():
            self.sizes[number] += sum(map(size_of, blocks))
        ahead = self._moof + self._header + self.payload - self._tracks[-1].payload
        if len(ahead) and int(ahead.max()) >= _WIDE >> 1:
            raise BuildError(
                "a fragment is so large that the samples of its last track cannot be named",
                path="moof/traf/trun",
                expected=f"data_offset below {_WIDE >> 1}",
                found=int(ahead.max()),
                advice="take one track alone, or shorter fragments",
            )

    def __len__(self) -> int:
        return len(self.sizes)

    def parts(self, number: int) -> list[Block]:
        """The parts of a fragment, by its number from 0."""
        payload, header = int(self.payload[number]), int(self._header[number])
        at = int(self._moof[number]) + header
        trafs: list[Block] = []
        media: list[Block] = []
        place = _MOOF
        for track in self._tracks:
            traf, inside, size = track.traf(number, at, place)
            place += sum(map(size_of, traf))
            trafs += traf
            media += inside
            at += size
        moof = struct.pack(
            ">I4sI4sII", int(self._moof[number]), b"moof", 16, b"mfhd", 0, number + 1
        )
        mdat = struct.pack(">I4s", payload + 8, b"mdat")
        if header == 16:
            mdat = struct.pack(">I4sQ", 1, b"mdat", payload + 16)
        ahead = [self._lead, *self._events.get(number, ()), b"" if number else self._empty]
        return [*_joined([*ahead, moof, *trafs, mdat]), *media]


def inside_fragments(track: int, groups: Sequence[Grouping], protected: bool) -> Iterator[BoxKind]:
    """What made fragments say of the samples of a track besides their times and places."""
    for one in groups:
        yield BoxKind(track, f"sbgp {one.kind}".rstrip())
    if protected:
        yield from (BoxKind(track, name) for name in ("saiz", "saio"))


def _joined(blocks: Iterable[Block]) -> Iterator[Block]:
    """Made bytes that touch as one."""
    pieces: list[bytes] = []
    for block in blocks:
        if isinstance(block, bytes):
            pieces.append(block)
            continue
        yield b"".join(pieces)
        yield block
        pieces = []
    yield b"".join(pieces)


def _empty(track: int, time: int) -> bytes:
    """A fragment that has no samples, and says the time at which it begins."""
    tfhd = struct.pack(">I4sII", 16, b"tfhd", DEFAULT_BASE_IS_MOOF, track)
    tfdt = struct.pack(">I4sIQ", _TFDT, b"tfdt", 1 << 24, time)
    size = _MOOF + _TRAF + len(tfhd) + _TFDT + 20
    trun = struct.pack(">I4sIIi", 20, b"trun", DATA_OFFSET, 0, size + 8)
    head = struct.pack(">I4sI4sII", size, b"moof", 16, b"mfhd", 0, 0)
    head += struct.pack(">I4s", size - _MOOF, b"traf")
    return b"".join([head, tfhd, tfdt, trun, struct.pack(">I4s", 8, b"mdat")])


class _Track:
    """What the fragments hold of one track.

    Of a fragment alone depends which values its samples share: what comes later changes nothing.
    """

    def __init__(
        self,
        media: PlannedTrack,
        edges: Int64,
        descriptions: Int64 | None,
        protection: Protected | None,
        groups: Sequence[Grouping],
        explicit: bool,
    ) -> None:
        samples = media.samples
        self._groups = groups
        self._explicit = explicit
        self._offsets = offsets = media.offsets
        _refuse_wide(media, offsets)
        self._media, self._edges = media, edges
        self._descriptions, self._protection = descriptions, protection
        self._durations, self._sizes = media.durations, samples.size
        if media.unit:
            # a row stands for several samples that are alike
            self._sizes = np.broadcast_to(np.int64(media.unit), len(samples))
            self._durations = media.durations // (samples.size // media.unit)
        # how often each column changes, and how many are not 0, up to each sample
        self._changes = [
            _counted(column[1:] != column[:-1]) for column in (self._durations, self._sizes)
        ]
        self._moved = _counted(offsets != 0)
        self._bytes_before = np.concatenate([[0], np.cumsum(samples.size)])
        self._sync_before = _counted(samples.sync)
        self.payload: Int64 = np.diff(self._bytes_before[edges])
        runs = self._runs(edges)
        # sizes of all runs at once, then of the fragments that they are in
        low, high = runs[:-1], runs[1:]
        kind = self._kinds(low, high)
        even_duration, even_size = self._even(low, high)
        width = 4 * (
            ~even_duration + 0 + ~even_size + (kind == _MIXED)
            + self._are_moved(low, high)
        )  # fmt: skip
        sizes = (
            _TRAF + _TFDT + 16 + 20 + 4 * (even_duration + 0 + even_size)
            + 4 * (kind != _MIXED) + 4 * (kind == _FIRST_SYNC) + (high - low) * width
        )  # fmt: skip
        if explicit:
            sizes = sizes + 4
        elif descriptions is not None:
            sizes = sizes + 4 * (descriptions[np.minimum(low, len(samples) - 1)] != 1)
        if protection is not None:
            sizes = sizes + protection.boxes(low, high)
        for one in groups:
            sizes = sizes + one.sizes(low, high)
        sizes = np.where(high > low, sizes, 0)
        self.boxes: Int64 = np.zeros(len(edges) - 1, np.int64)
        np.add.at(self.boxes, np.searchsorted(edges, low, side="right") - 1, sizes)

    def _even(self, low: Any, high: Any) -> tuple[Any, Any]:
        """Whether the samples of runs share their duration, and their size."""
        if self._explicit:
            none = np.zeros(np.shape(low), np.bool_)
            return none, none
        last = np.maximum(high - 1, low)
        duration, size = (changes[last] == changes[low] for changes in self._changes)
        return duration, size

    def _are_moved(self, low: Any, high: Any) -> Any:
        """Whether samples of runs have composition offsets."""
        return (self._moved[high] > self._moved[low]) | self._explicit

    def _runs(self, edges: Int64) -> Int64:
        """Where trafs begin: at each fragment, and where another sample description is used."""
        if self._descriptions is None:
            return np.unique(edges)
        changes = np.flatnonzero(np.diff(self._descriptions)) + 1
        return np.unique(np.concatenate([edges, changes]))

    def _kinds(self, low: Int64, high: Int64) -> Int64:
        """Which of their samples are sync, of runs."""
        if self._explicit:
            return np.full(len(low), _MIXED)
        count = self._sync_before[high] - self._sync_before[low]
        first = self._media.samples.sync[np.minimum(low, len(self._media) - 1)]
        kind: Int64 = np.select(
            [count == high - low, (count == 1) & first, count == 0],
            [_EVEN_SYNC, _FIRST_SYNC, _NO_SYNC],
            _MIXED,
        )
        return kind

    def traf(self, number: int, at: int, place: int) -> tuple[list[Block], list[Block], int]:
        """The trafs of a fragment, where their samples are, and bytes of these.

        Args:
            number: of the fragment.
            at: where the samples begin, in bytes from the moof's start.
            place: where the trafs begin, likewise.
        """
        low, high = int(self._edges[number]), int(self._edges[number + 1])
        start = at
        blocks: list[Block] = []
        media: list[Block] = []
        edges = np.array([low, high]) if low < high else np.zeros(0, np.int64)
        if self._descriptions is not None and low < high:
            changes = np.flatnonzero(np.diff(self._descriptions[low:high])) + low + 1
            edges = np.concatenate([[low], changes, [high]])
        for first, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            run = self._run(first, stop, at, place)
            place += sum(map(size_of, run))
            blocks += run
            at += int(self._bytes_before[stop] - self._bytes_before[first])
        if low < high:
            media = self._places(low, high)
        return blocks, media, at - start

    def _places(self, low: int, high: int) -> list[Block]:
        """Where samples lie, or what was made of them; those that touch are one range."""
        blocks: list[Block] = []
        for number in sorted(n for n in self._media.made if low <= n < high):
            blocks += [*self._copied(low, number), self._media.made[number]]
            low = number + 1
        return [*blocks, *self._copied(low, high)]

    def _copied(self, low: int, high: int) -> list[Block]:
        if low == high:
            return []
        samples, sources = self._media.samples, self._media.source[low:high]
        starts, sizes = samples.offset[low:high], samples.size[low:high]
        apart = (starts[1:] != starts[:-1] + sizes[:-1]) | (sources[1:] != sources[:-1])
        heads = np.append(0, np.flatnonzero(apart) + 1)
        lengths = np.add.reduceat(sizes, heads)
        is_filled = lengths > 0
        starts, sources, lengths = (
            starts[heads][is_filled],
            sources[heads][is_filled],
            lengths[is_filled],
        )
        edges = [0, *(np.flatnonzero(np.diff(sources)) + 1).tolist(), len(sources)]
        blocks: list[Block] = []
        for first, stop in pairwise(edges):
            if stop - first > 1:
                mine = slice(first, stop)
                blocks.append(Scattered(int(sources[first]), starts[mine], lengths[mine]))
            elif stop > first:
                whole = ByteRange.of(int(starts[first]), int(lengths[first]))
                blocks.append(SourceRange(int(sources[first]), whole))
        return blocks

    def _run(self, low: int, high: int, at: int, place: int) -> list[Block]:
        samples = self._media.samples
        even_duration, even_size = self._even(low, high)
        kind = int(self._kinds(np.array([low]), np.array([high]))[0])
        description = 1 if self._descriptions is None else int(self._descriptions[low])
        flags, shared = DEFAULT_BASE_IS_MOOF, b""
        for value, flag in (
            (description if description != 1 or self._explicit else None, SAMPLE_DESCRIPTION_INDEX),
            (int(self._durations[low]) if even_duration else None, DEFAULT_SAMPLE_DURATION),
            (int(self._sizes[low]) if even_size else None, DEFAULT_SAMPLE_SIZE),
            (_shared_flags(kind), DEFAULT_SAMPLE_FLAGS),
        ):
            if value is not None:
                flags |= flag
                shared += struct.pack(">I", value)
        tfhd = (
            struct.pack(">I4sII", 16 + len(shared), b"tfhd", flags, self._media.track.id) + shared
        )
        time = int(self._media.decode[low]) % (1 << 64)
        tfdt = struct.pack(">I4sIQ", _TFDT, b"tfdt", 1 << 24, time)
        columns = [("duration", ">u4")] * (not even_duration) + [("size", ">u4")] * (not even_size)
        if kind == _MIXED:
            columns.append(("flags", ">u4"))
        if self._are_moved(low, high):
            columns.append(("offset", ">i4"))
        rows = np.empty(high - low, np.dtype(columns))
        flags, first = 1 << 24 | DATA_OFFSET, b""
        for name, _ in columns:
            flags |= _FLAG_OF[name]
            if name == "flags":
                rows[name] = np.where(samples.sync[low:high], SYNC_FLAGS, OTHER_FLAGS)
            elif name == "offset":
                rows[name] = self._offsets[low:high]
            elif name == "duration":
                rows[name] = self._durations[low:high]
            else:
                rows[name] = self._sizes[low:high]
        if kind == _FIRST_SYNC:
            flags |= FIRST_SAMPLE_FLAGS
            first = struct.pack(">I", SYNC_FLAGS)
        size = 20 + len(first) + rows.nbytes
        count, unit = high - low, self._media.unit
        if unit:
            count = int(self._bytes_before[high] - self._bytes_before[low]) // unit
        trun = struct.pack(">I4sIIi", size, b"trun", flags, count, at) + first
        head, keys = tfhd + tfdt, []
        if self._protection is not None:
            keys = self._protection.blocks(low, high, place + _TRAF + len(head))
        sbgps = b"".join(one.sbgp(low, high) for one in self._groups)
        behind = trun + rows.tobytes() + sbgps
        size = _TRAF + len(head) + sum(map(size_of, keys)) + len(behind)
        return [struct.pack(">I4s", size, b"traf") + head, *keys, behind]


_FLAG_OF: Final = {
    "duration": SAMPLE_DURATION,
    "size": SAMPLE_SIZE,
    "flags": SAMPLE_FLAGS,
    "offset": SAMPLE_COMPOSITION_TIME_OFFSET,
}


def _counted(which: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """How many are so before each, and in all; a track has fewer than 2^31 samples."""
    counts = np.zeros(len(which) + 1, np.int32)
    np.cumsum(which, dtype=np.int32, out=counts[1:])
    return counts


def _shared_flags(kind: int) -> int | None:
    return {_EVEN_SYNC: SYNC_FLAGS, _FIRST_SYNC: OTHER_FLAGS, _NO_SYNC: OTHER_FLAGS}.get(kind)


def _refuse_wide(media: PlannedTrack, offsets: Int64) -> None:
    for name, column, least, most in (
        ("sample_duration", media.durations, 0, _WIDE),
        ("sample_size", media.samples.size, 0, _WIDE),
        ("sample_composition_time_offset", offsets, -(_WIDE >> 1), _WIDE >> 1),
    ):
        if len(column) and not (least <= int(column.min()) and int(column.max()) < most):
            raise BuildError(
                f"{name} of track {media.track.id} does not fit into a fragment",
                path="moof/traf/trun",
                expected=f"{least} to {most - 1}",
                found=f"{int(column.min())} to {int(column.max())}",
            )
