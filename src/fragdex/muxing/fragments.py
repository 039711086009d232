"""The writer of fragments: moofs around the samples of tracks, each with its mdat.

One moof for all tracks of a fragment, a traf for each, then one mdat. Values that all samples share
stand in the tfhd, the others in rows of the trun; which these are is decided for a whole track, so
that the size of a moof follows from how many samples it has. Positions count from the moof
(default-base-is-moof), so that fragments can be moved.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
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
from fragdex.indexing import native
from fragdex.muxing.between import by_segment
from fragdex.muxing.plan import Plan, PlannedTrack, begins_of
from fragdex.muxing.segmentation import reference
from fragdex.muxing.view import Block, Interleaved, Scattered, SourceRange, sizes_of

WHY: Final = "made fragments do not have it"
"""Why what they have no place for is left out."""
SYNC_FLAGS, OTHER_FLAGS = 0x02000000, 0x01010000
"""sample_depends_on 2 (on none), and 1 with sample_is_non_sync_sample (8.8.3.1)."""
_WIDE: Final = 1 << 32
_EVEN_SYNC, _FIRST_SYNC, _NO_SYNC, _MIXED = range(4)
"""Which samples of a fragment are sync: all, the first alone, none, or as its rows say."""
_MOOF, _TRAF, _TFDT = 24, 8, 20
"""Bytes of a moof with its mfhd, of a traf's header, of a tfdt of version 1."""


class Fragments:
    """Fragments of a plan.

    Args:
        plan: its tracks; those that have no samples in a fragment are not in it. Events stand in
            front of the fragment with whose media they come.
        edges: of each track, the first sample of each fragment, and the end; equally many.
        lead: bytes in front of each fragment, or of those that are led.
        explicit: whether each value stands in the row of its sample, for readers that know no
            defaults.
        begins: decode time at which the first fragment says that it begins, before its samples do;
            None: with them. Players that take it for the time of the fragment are right then.
        first_number: sequence_number of the first fragment.
        stop: seconds at which what is known ends: events after it are left for later; None: the
            last fragment has them.
        led: numbers of the fragments with `lead`; None: all.

    Raises:
        BuildError: a value does not fit into a fragment.
    """

    def __init__(
        self,
        plan: Plan,
        edges: Sequence[Int64],
        lead: bytes = b"",
        begins: int | None = None,
        first_number: int = 1,
        *,
        explicit: bool = False,
        stop: Fraction | None = None,
        led: Int64 | None = None,
    ) -> None:
        media = plan.tracks
        self._tracks = [_Track(*one, explicit) for one in zip(media, edges, strict=True)]
        self._lead, self._first_number = lead, first_number
        self._events: Mapping[int, Sequence[Block]] = {}
        if events := plan.between.events:
            pace = reference(media)
            times = begins_of(pace, edges[media.index(pace)])
            self._events = by_segment(events, times, pace.timescale, stop)
        self._empty = b"" if begins is None else _empty(media[0].track.id, begins)
        payload = sum(track.payload for track in self._tracks)
        self.payload: Int64 = np.asarray(payload, np.int64)
        self._header = np.where(self.payload + 8 >= _WIDE, 16, 8)
        boxes = _MOOF + sum(track.boxes for track in self._tracks)
        self._moof: Int64 = np.asarray(boxes, np.int64)
        self.sizes: Int64 = self._moof + self._header + self.payload
        self._led = np.full(len(self.sizes), led is None)
        if led is not None:
            self._led[led] = True
        self.sizes += len(lead) * self._led
        self.sizes[:1] += len(self._empty)
        for number, blocks in self._events.items():
            self.sizes[number] += sizes_of(blocks)
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

    def parts(self, low: int, high: int | None = None) -> list[Block]:
        """The parts of fragments, by the number of the first, from 0, and of the one after them."""
        stop = low + 1 if high is None else high
        track, first, numbers = self._tracks[0], low == 0 and self._empty, range(low, stop)
        is_led_later = bool(self._lead) and bool(self._led[low + 1 : stop].any())
        is_alike = len(self._tracks) == 1 and track.is_alike and not is_led_later
        if is_alike and not (self._events and any(n in self._events for n in numbers)):
            lead = (self._lead if self._led[low] else b"") + (first or b"")
            return track.fragments(lead, self._first_number + low, low, stop)
        return [block for number in numbers for block in self._parts(number)]

    def _parts(self, number: int) -> list[Block]:
        payload, header = int(self.payload[number]), int(self._header[number])
        at = int(self._moof[number]) + header
        trafs: list[Block] = []
        media: list[Block] = []
        place = _MOOF
        for track in self._tracks:
            traf, inside, size = track.traf(number, at, place)
            place += sizes_of(traf)
            trafs += traf
            media += inside
            at += size
        moof, turn = int(self._moof[number]), self._first_number + number
        head = struct.pack(">I4sI4sII", moof, b"moof", 16, b"mfhd", 0, turn)
        mdat = struct.pack(">I4s", payload + 8, b"mdat")
        if header == 16:
            mdat = struct.pack(">I4sQ", 1, b"mdat", payload + 16)
        lead = self._lead if self._led[number] else b""
        ahead = [lead, *self._events.get(number, ()), b"" if number else self._empty]
        return [*_joined([*ahead, head, *trafs, mdat]), *media]


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
        explicit: bool,
    ) -> None:
        samples, descriptions, protection = media.samples, media.descriptions, media.protection
        self._explicit = explicit
        self._offsets = media.offsets
        self._media = media
        self._edges: list[int] = edges.tolist()
        self._descriptions, self._protection = descriptions, protection
        self._durations, self._sizes = media.durations, samples.size
        if media.unit:
            # a row stands for several samples that are alike
            self._sizes = np.broadcast_to(np.int64(media.unit), len(samples))
            self._durations = media.durations // media.counts
        self._bytes_before = np.concatenate([[0], np.cumsum(samples.size)])
        self._source = int(media.source[0]) if len(media.source) else 0
        self._one_source = not (media.source[1:] != media.source[:-1]).any()
        self.payload: Int64 = np.diff(self._bytes_before[edges])
        # what is decided of all runs of samples at once, a traf each
        self._runs = runs = self._begins(edges)
        self._first_run: list[int] = np.searchsorted(runs, edges).tolist()
        low, high = runs[:-1], runs[1:]
        durations, sizes, offsets = _ranges(media, self._offsets)
        self._kind = kind = self._kinds(low, high)
        self._even_duration = even_duration = self._even(self._durations, low, high, *durations)
        self._even_size = even_size = self._even(self._sizes, low, high, *sizes)
        self._moved = moved = np.full(len(low), explicit)
        if offsets != (0, 0) and not explicit:
            before = _counted(self._offsets != 0)
            self._moved = moved = before[high] > before[low]
        width = 4 * (~even_duration + 0 + ~even_size + (kind == _MIXED) + moved)
        size = (
            _TRAF + _TFDT + 16 + 20 + 4 * (even_duration + 0 + even_size)
            + 4 * (kind != _MIXED) + 4 * (kind == _FIRST_SYNC) + (high - low) * width
        )  # fmt: skip
        if explicit:
            size = size + 4
        elif descriptions is not None:
            size = size + 4 * (descriptions[np.minimum(low, len(samples) - 1)] != 1)
        if protection is not None:
            size = size + protection.boxes(low, high)
        for one in media.groups:
            size = size + one.sizes(low, high)
        for parts in media.subsamples:
            size = size + parts.sizes(low, high)
        self.boxes: Int64 = np.zeros(len(edges) - 1, np.int64)
        np.add.at(self.boxes, np.searchsorted(edges, low, side="right") - 1, size)

    def _even(self, column: Int64, low: Int64, high: Int64, least: int, most: int) -> Any:
        """Whether the samples of runs share a value."""
        if least == most or self._explicit:
            return np.full(len(low), not self._explicit)
        even = column[low] == column[np.minimum(low + 1, high - 1)]
        if not (even & (high - low > 2)).any():
            return even  # the second sample decides
        changes = _counted(column[1:] != column[:-1])
        return changes[high - 1] == changes[low]

    def _begins(self, edges: Int64) -> Int64:
        """Where trafs begin: at each fragment, and where another sample description is used."""
        if self._descriptions is None:
            distinct: Int64 = edges[np.append(True, edges[1:] > edges[:-1])]
            return distinct
        changes = np.flatnonzero(np.diff(self._descriptions)) + 1
        return np.unique(np.concatenate([edges, changes]))

    def _kinds(self, low: Int64, high: Int64) -> Int64:
        """Which of their samples are sync, of runs."""
        if self._explicit:
            return np.full(len(low), _MIXED)
        sync = self._media.samples.sync
        if sync.all():
            return np.full(len(low), _EVEN_SYNC)
        numbers = np.flatnonzero(sync)
        count = np.searchsorted(numbers, high) - np.searchsorted(numbers, low)
        kind: Int64 = np.select(
            [count == high - low, (count == 1) & sync[low], count == 0],
            [_EVEN_SYNC, _FIRST_SYNC, _NO_SYNC],
            _MIXED,
        )
        return kind

    @cached_property
    def is_alike(self) -> bool:
        """Whether its fragments are a traf each, and no more than its samples say."""
        media = self._media
        return (
            native.compiled is not None
            and not (self._explicit or media.unit or media.made)
            and self._descriptions is None
            and self._protection is None
            and self._one_source
        )

    @cached_property
    def _columns(self) -> tuple[Int64, ...]:
        samples = self._media.samples
        columns = samples.dts, self._durations, self._sizes, self._offsets, samples.offset
        return tuple(np.ascontiguousarray(column, np.int64) for column in columns)

    def fragments(self, lead: bytes, number: int, low: int, high: int) -> list[Block]:
        """Fragments that are alike, in one pass."""
        media, edges = self._media, self._edges[low : high + 1]
        after: tuple[bytes, ...] = ()
        if media.groups or media.subsamples:
            after = tuple(self._after(*both) for both in pairwise(edges))
        made, start, size = native.moofs(
            lead, number, media.track.id, edges, self._columns, media.samples.sync, after
        )
        source = self._source
        if high - low > 1:
            return [Interleaved(source, made, start, size)]
        ranges = Scattered(source, start[1:], size[1:])
        return [made, *(ranges.parts() if len(ranges.size) < 2 else [ranges])]

    def _after(self, low: int, high: int) -> bytes:
        """What stands after the trun of samples."""
        media = self._media
        groups = [one.sbgp(low, high) for one in media.groups]
        return b"".join([*groups, *(one.box(low, high) for one in media.subsamples)])

    def traf(self, number: int, at: int, place: int) -> tuple[list[Block], list[Block], int]:
        """The trafs of a fragment, where their samples are, and bytes of these.

        Args:
            at: where the samples begin, in bytes from the moof's start.
        """
        low, high = self._edges[number : number + 2]
        if low == high:
            return [], [], 0
        start = int(self._bytes_before[low])
        blocks: list[Block] = []
        for run in range(*self._first_run[number : number + 2]):
            first = int(self._runs[run])
            traf = self._run(run, at + int(self._bytes_before[first]) - start, place)
            place += sizes_of(traf)
            blocks += traf
        return blocks, self._places(low, high), int(self._bytes_before[high]) - start

    def _places(self, low: int, high: int) -> list[Block]:
        """Where samples lie, or what was made of them; those that touch are one range."""
        made = self._media.made
        blocks: list[Block] = []
        for number in sorted(n for n in made if low <= n < high) if made else ():
            blocks += [*self._copied(low, number), made[number]]
            low = number + 1
        return [*blocks, *self._copied(low, high)]

    def _copied(self, low: int, high: int) -> list[Block]:
        if low == high:
            return []
        samples, sources = self._media.samples, self._media.source
        starts, sizes = samples.offset[low:high], samples.size[low:high]
        if self._one_source:
            places = Scattered.joined(int(sources[low]), starts, sizes)
            many = len(places.start)
            if many == 1:
                whole = ByteRange.of(int(places.start[0]), int(places.size[0]))
                return [SourceRange(places.source, whole)]
            return [places] if many else []
        turns = np.flatnonzero(sources[low + 1 : high] != sources[low : high - 1]) + low + 1
        blocks: list[Block] = []
        for first, stop in pairwise([low, *turns.tolist(), high]):
            part = slice(first - low, stop - low)
            places = Scattered.joined(int(sources[first]), starts[part], sizes[part])
            blocks += [places] if len(places.start) else []
        return blocks

    def _run(self, run: int, at: int, place: int) -> list[Block]:
        """The traf of a run, whose samples begin at byte `at` of the moof."""
        media, (low, high) = self._media, self._runs[run : run + 2].tolist()
        kind = int(self._kind[run])
        description = 1 if self._descriptions is None else int(self._descriptions[low])
        flags, values, names = DEFAULT_BASE_IS_MOOF, [], []
        if description != 1 or self._explicit:
            flags |= SAMPLE_DESCRIPTION_INDEX
            values.append(description)
        if self._even_duration[run]:
            flags |= DEFAULT_SAMPLE_DURATION
            values.append(int(self._durations[low]))
        else:
            names.append("duration")
        if self._even_size[run]:
            flags |= DEFAULT_SAMPLE_SIZE
            values.append(int(self._sizes[low]))
        else:
            names.append("size")
        if kind != _MIXED:
            flags |= DEFAULT_SAMPLE_FLAGS
            values.append(SYNC_FLAGS if kind == _EVEN_SYNC else OTHER_FLAGS)
        else:
            names.append("flags")
        if self._moved[run]:
            names.append("offset")
        head = struct.pack(
            f">I4sII{len(values)}II4sIQ",
            *(16 + 4 * len(values), b"tfhd", flags, media.track.id, *values),
            *(_TFDT, b"tfdt", 1 << 24, int(media.samples.dts[low]) % (1 << 64)),
        )
        flags, first = 1 << 24 | DATA_OFFSET, b""
        for name in names:
            flags |= _FLAG_OF[name]
        if kind == _FIRST_SYNC:
            flags |= FIRST_SAMPLE_FLAGS
            first = struct.pack(">I", SYNC_FLAGS)
        rows = self._rows(names, low, high)
        size = 20 + len(first) + len(rows)
        count = high - low
        if media.unit:
            count = int(self._bytes_before[high] - self._bytes_before[low]) // media.unit
        trun = struct.pack(">I4sIIi", size, b"trun", flags, count, at) + first + rows
        keys: list[Block] = []
        if self._protection is not None:
            keys = self._protection.blocks(low, high, place + _TRAF + len(head))
        behind = trun + self._after(low, high)
        size = _TRAF + len(head) + sizes_of(keys) + len(behind)
        return [struct.pack(">I4s", size, b"traf") + head, *keys, behind]

    def _rows(self, names: Sequence[str], low: int, high: int) -> bytes:
        """The values of samples that each has for itself."""
        rows = np.empty((high - low, len(names)), ">u4")
        for number, name in enumerate(names):
            if name == "flags":
                sync = self._media.samples.sync[low:high]
                rows[:, number] = np.where(sync, SYNC_FLAGS, OTHER_FLAGS)
            elif name == "offset":
                rows[:, number] = self._offsets[low:high].astype(np.int32).view(np.uint32)
            else:
                column = self._durations if name == "duration" else self._sizes
                rows[:, number] = column[low:high]
        return rows.tobytes()


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


def _ranges(media: PlannedTrack, offsets: Int64) -> list[tuple[int, int]]:
    """Least and greatest duration, size and composition offset of samples."""
    ranges = []
    for name, column, least, most in (
        ("sample_duration", media.durations, 0, _WIDE),
        ("sample_size", media.samples.size, 0, _WIDE),
        ("sample_composition_time_offset", offsets, -(_WIDE >> 1), _WIDE >> 1),
    ):
        found = (int(column.min()), int(column.max())) if len(column) else (0, 0)
        if found[0] < least or found[1] >= most:
            raise BuildError(
                f"{name} of track {media.track.id} does not fit into a fragment",
                path="moof/traf/trun",
                expected=f"{least} to {most - 1}",
                found=f"{found[0]} to {found[1]}",
            )
        ranges.append(found)
    return ranges
