"""Samples of fragments, made when they are requested.

The moofs of the wanted rows are joined and read again; decode times and repairs come from the
fragment table, so that the answer is the one the table was made with. Loaders of an index are
values: they can be pickled, and take along the bytes they read from, which are the smallest exact
form of the samples. `RowSamples` asks the file where the index holds no samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fragdex.box_header import read_header
from fragdex.boxes import find, parse
from fragdex.boxes.fragments import (
    DEFAULT_BASE_IS_MOOF,
    SAMPLE_COMPOSITION_TIME_OFFSET,
    SAMPLE_DURATION,
    SAMPLE_FLAGS,
    SAMPLE_SIZE,
)
from fragdex.byterange import ByteRange
from fragdex.errors import InexactIndex, LimitExceeded
from fragdex.fragments.findings import Findings
from fragdex.fragments.table import NULL, FragmentFlags, FragmentTable, Int64, SampleTable
from fragdex.fragments.track_info import SampleDefaults
from fragdex.indexing import native
from fragdex.indexing.batch import decode
from fragdex.indexing.movie import sample_tables
from fragdex.indexing.positions import chained, run_starts
from fragdex.indexing.progressive import SampleRuns, read_sample_runs
from fragdex.indexing.runs import NON_SYNC, RunDetails, column_of
from fragdex.indexing.shapes import KnownShapes, Shapes
from fragdex.record import record
from fragdex.seeking.model import SampleLoader
from fragdex.sources import Source, give_back

if TYPE_CHECKING:
    from fragdex.seeking.track import Track

MoofBytes = Callable[[Int64], tuple[bytes, Int64]]
"""Offsets of moofs in the file → their bytes joined, and the size of each."""

FEW_BYTES = 1 << 16
"""Moofs of so many bytes are kept decoded: a clip needs the same rows several times."""
MANY_TRACKS = 8
"""Moofs of more tracks are kept decoded, however large: each track would decode all others."""


class DecodedMoofs:
    """What some moofs say of all their tracks.

    Args:
        joined: their bytes.
        offsets: of each in the file.
        defaults: track_ID → what its trex says.

    Attributes:
        trafs, runs, details: what they say.
        unwritten: samples of each run that have no row of their own.
    """

    def __init__(
        self, joined: bytes, offsets: Int64, defaults: Mapping[int, SampleDefaults]
    ) -> None:
        buffer = memoryview(joined)
        met = native.walk(buffer, 0, 1 << 62, inside=True)
        batch = decode(buffer, met.top, met.inner, 0, defaults, details=True)
        assert batch.details is not None
        self.size, self.offsets = len(joined), offsets
        self.trafs, self.runs, self.details = batch.trafs, batch.runs, batch.details
        self.unwritten = np.zeros(len(self.runs), np.int64)
        for group in self.details.groups:
            if not group.stride:
                self.unwritten[group.rows] = self.details.count[group.rows]
        self._trafs = _ByTrack(self.trafs.track)
        self._runs = _ByTrack(self.trafs.track[self.runs.traf])
        self._starts: tuple[bytes, Int64] | None = None

    @property
    def tracks(self) -> int:
        """How many tracks have a traf in them."""
        return self._trafs.count

    def of(self, track: int) -> tuple[Int64, Int64]:
        """The rows of `trafs` and of `runs` of one track, rising."""
        return self._trafs.rows(track), self._runs.rows(track)

    def starts(self, repaired: npt.NDArray[np.bool_]) -> Int64:
        """Where each run starts in the file.

        Args:
            repaired: of each moof: it is the base of all its trafs, whatever they say.

        Raises:
            LimitExceeded: the samples take more bytes than any file has.
        """
        known = repaired.tobytes()
        if self._starts is None or self._starts[0] != known:
            trafs = self.trafs
            relative, end = run_starts(self.runs, trafs)
            # Of all tracks, since an implicit base follows the traf before it.
            moof = self.offsets[trafs.moof]
            named = trafs.base != NULL
            first = np.diff(trafs.moof, prepend=-1) != 0
            from_moof = first | ((trafs.flags & DEFAULT_BASE_IS_MOOF) != 0)
            base = chained(named | from_moof, np.where(named, trafs.base, moof), end)
            base = np.where(repaired[trafs.moof], moof, base)
            self._starts = known, base[self.runs.traf] + relative
        return self._starts[1]


class _ByTrack:
    """Rows by the track that each is of."""

    def __init__(self, track: Int64) -> None:
        self._order = np.argsort(track, kind="stable")
        self._sorted = track[self._order]
        self.count = int(np.count_nonzero(np.diff(self._sorted))) + bool(len(track))

    def rows(self, track: int) -> Int64:
        first, stop = np.searchsorted(self._sorted, [track, track + 1]).tolist()
        return self._order[first:stop]


class MoofDecoder:
    """Decodes moofs, and keeps the last ones where others are likely to ask for them.

    Pickled, it takes along what it reads from, and nothing that it has decoded.

    Args:
        shapes: of most of them, as far as they are known; `Shapes` are learned when one is needed.
    """

    def __init__(self, moof_bytes: MoofBytes, shapes: KnownShapes | Shapes | None = None) -> None:
        self._moof_bytes = moof_bytes
        self._shapes = None if isinstance(shapes, Shapes) else shapes
        self._learned = shapes if isinstance(shapes, Shapes) else None
        self._last: tuple[bytes, Mapping[int, SampleDefaults], DecodedMoofs] | None = None

    def __call__(self, offsets: Int64, defaults: Mapping[int, SampleDefaults]) -> DecodedMoofs:
        """The moofs at these offsets of the file, which must rise."""
        key, last = offsets.tobytes(), self._last
        if last is not None and last[0] == key and last[1] is defaults:
            return last[2]
        decoded = DecodedMoofs(self._moof_bytes(offsets)[0], offsets, defaults)
        keep = decoded.size <= FEW_BYTES or decoded.tracks > MANY_TRACKS
        self._last = (key, defaults, decoded) if keep else None
        return decoded

    def by_shape(
        self, track: int, fragments: FragmentTable, defaults: Mapping[int, SampleDefaults]
    ) -> SampleTable | None:
        """Samples of some rows of a track, in one pass; None where the moofs must be decoded."""
        if native.compiled is None or (self._shapes is None and self._learned is None):
            return None
        if self._shapes is not None and track not in self._shapes.slots:
            return None
        data, sizes = self._moof_bytes(fragments.moof_offset)
        written = self._written(track, fragments, data, sizes, defaults)
        if written is None and self._learned is not None:
            learned = self._learned
            learned.use(defaults)
            places = np.cumsum(sizes) - sizes
            native.fit(data, places, sizes, learned.programs, learned.learner)
            self._shapes = learned.known
            written = self._written(track, fragments, data, sizes, defaults)
        if written is None:
            return None
        (offset, size, dts, cts, duration), sync = written
        return SampleTable(offset, size, dts, cts, duration, sync)

    def _written(
        self,
        track: int,
        fragments: FragmentTable,
        data: bytes,
        sizes: Int64,
        defaults: Mapping[int, SampleDefaults],
    ) -> tuple[Int64, npt.NDArray[np.bool_]] | None:
        shapes = self._shapes
        slot = None if shapes is None else shapes.slots.get(track)
        if shapes is None or slot is None or shapes.defaults != defaults:
            return None
        places = fragments.moof_offset, fragments.dts
        return native.samples(data, sizes, shapes.programs, slot, *places)

    def __reduce__(self) -> tuple[object, ...]:
        return MoofDecoder, (self._moof_bytes,)


LEAST_ROW = 4
"""Bytes of a row of a trun that says anything of its sample."""
MAX_WITHOUT_BYTES = 1 << 18
"""Samples of one table that no byte of the file stands for."""
AT_ONCE = 8192
"""Fragments expanded together; bounds the memory in addition to the finished table."""


def samples_of(
    track: int,
    fragments: FragmentTable,
    decoder: MoofDecoder,
    defaults: Mapping[int, SampleDefaults],
) -> SampleTable:
    """Every sample of these rows of a track's fragment table, in decode order.

    Raises:
        LimitExceeded: more samples are claimed by runs without rows than media bytes and the bytes
            of the moofs stand for, and `MAX_WITHOUT_BYTES` besides.
    """
    room = _Room.of(fragments)
    parts = []
    for at in range(0, len(fragments), AT_ONCE):
        rows = fragments.rows(slice(at, at + AT_ONCE))
        part = decoder.by_shape(track, rows, defaults)
        parts.append(_samples(track, rows, decoder, defaults, room) if part is None else part)
    return SampleTable.concat(parts)


@record(slots=True)
class _Room:
    """How many samples may still be written out that have no row of their own in a trun."""

    left: int

    @classmethod
    def of(cls, fragments: FragmentTable) -> _Room:
        """Samples of fragments have a byte of media data each, if they hold anything."""
        inside = (fragments.data_start != NULL) & (fragments.flags & FragmentFlags.OUTSIDE == 0)
        start, stop = fragments.data_start[inside], fragments.data_stop[inside]
        return cls(MAX_WITHOUT_BYTES + (int(stop.max()) - int(start.min()) if len(start) else 0))

    def take(self, claimed: int, moof_bytes: int, offset: int) -> None:
        """Count samples that fragments from `offset` on claim, whose moofs have so many bytes."""
        self.left += moof_bytes // LEAST_ROW
        if claimed > self.left:
            raise LimitExceeded(
                "too many samples for a table, as they have no bytes in the file",
                path="moof/traf/trun",
                offset=offset,
                expected=f"at most {self.left}",
                found=claimed,
                advice="ask for the samples of other fragments; these have no media",
            )
        self.left -= claimed


def _samples(
    track: int,
    fragments: FragmentTable,
    decoder: MoofDecoder,
    defaults: Mapping[int, SampleDefaults],
    room: _Room,
) -> SampleTable:
    moofs = decoder(fragments.moof_offset, defaults)
    mine, chosen = moofs.of(track)
    claimed = moofs.unwritten[chosen]
    if claimed.any():
        worst = moofs.trafs.moof[moofs.runs.traf[chosen[claimed.argmax()]]]
        room.take(int(claimed.sum()), moofs.size, int(fragments.moof_offset[worst]))
    start = moofs.starts((fragments.flags & FragmentFlags.REPAIRED) != 0)

    trafs, run = moofs.trafs.rows(mine), moofs.runs.rows(chosen)
    traf = np.searchsorted(mine, run.traf)
    first_traf = np.diff(trafs.moof, prepend=-1) != 0
    row = np.cumsum(first_traf) - 1
    advance = trafs.gap + np.bincount(traf, run.duration, len(mine)).astype(np.int64)
    # The first traf of a row starts where the table says; a later one by its own tfdt, if any.
    value = np.where(first_traf, fragments.dts[row], trafs.time)
    with np.errstate(over="ignore"):
        dts = chained(first_traf | (trafs.time != NULL), value, advance)
        first_run = np.diff(traf, prepend=-1) != 0
        run_dts = chained(first_run, dts[traf], run.duration) if len(run) else run.duration
    return _expand(moofs.details, chosen, start[chosen], run_dts)


def _expand(details: RunDetails, chosen: Int64, start: Int64, run_dts: Int64) -> SampleTable:
    """One row per sample of the chosen runs."""
    count = details.count[chosen]
    total = int(count.sum())
    begin = np.cumsum(count) - count
    run = np.repeat(np.arange(len(chosen)), count)
    size = details.default_size[chosen][run]
    duration = details.default_duration[chosen][run]
    flags = details.default_flags[chosen][run]
    offset = np.zeros(total, np.int64)
    for group in details.groups:
        if not len(group.rows):
            continue
        place = np.searchsorted(group.rows, chosen)
        is_filled = (count > 0) & (group.rows[np.minimum(place, len(group.rows) - 1)] == chosen)
        wanted, first, counts = place[is_filled], begin[is_filled], count[is_filled]
        table = np.frombuffer(
            native.join(details.buffer, group.at[wanted], counts * group.stride), ">u4"
        )
        table = table.reshape(-1, max(1, group.stride // 4))
        to = _spread(first, counts)
        for mask, column in (
            (SAMPLE_DURATION, duration),
            (SAMPLE_SIZE, size),
            (SAMPLE_FLAGS, flags),
            (SAMPLE_COMPOSITION_TIME_OFFSET, offset),
        ):
            values = column_of(table, group.flags, mask)
            if values is not None:
                if mask in (SAMPLE_COMPOSITION_TIME_OFFSET, SAMPLE_DURATION):
                    values = values.astype(np.uint32).view(np.int32)
                column[to] = values
        if group.first_flags is not None:
            flags[first] = group.first_flags[wanted]
    dts = _running(duration, begin, count) + run_dts[run]
    return SampleTable(
        offset=_running(size, begin, count) + start[run],
        size=size,
        dts=dts,
        cts=dts + offset,
        duration=duration,
        sync=(flags & NON_SYNC) == 0,
    )


def _spread(begin: Int64, count: Int64) -> Int64:
    """begin[0], begin[0] + 1, … count[0] times, then from begin[1] on."""
    ends = np.cumsum(count)
    spread: Int64 = np.arange(int(ends[-1]) if len(ends) else 0)
    spread += np.repeat(begin - (ends - count), count)
    return spread


def _running(values: Int64, begin: Int64, count: Int64) -> npt.NDArray[np.int64]:
    """Sum of the values before each one, from the start of its run."""
    running = np.cumsum(values) - values
    filled = count > 0
    running -= np.repeat(running[begin[filled]], count[filled])
    return running


MANY = 1 << 10
"""Moofs read again together, above which the pages around them are given back."""


class MoofStore:
    """Bytes of moofs by their offsets in the file, from the buffers that hold them.

    Pickled or copied deeply, it holds the moofs alone, and no other byte of the file.
    """

    def __init__(
        self, offsets: Int64, sizes: Int64, buffers: list[tuple[memoryview, Int64]]
    ) -> None:
        self._offsets, self._sizes, self._buffers = offsets, sizes, buffers
        counts = [len(places) for _, places in buffers]
        self._edges = np.cumsum(counts) if counts else np.zeros(0, np.int64)

    def __call__(self, wanted: Int64) -> tuple[bytes, Int64]:
        """The moofs at these offsets, which must rise: their bytes joined, and the size of each."""
        index = np.searchsorted(self._offsets, wanted)
        parts = []
        owner = np.searchsorted(self._edges, index, side="right")
        # Rows rise with their moofs, so that each buffer is asked once.
        edges = np.flatnonzero(np.diff(owner, prepend=-1, append=-1)).tolist()
        for start, stop in pairwise(edges):
            number, mine = int(owner[start]), index[start:stop]
            buffer, places = self._buffers[number]
            first = int(self._edges[number - 1]) if number else 0
            parts.append(native.join(buffer, places[mine - first], self._sizes[mine]))
            if len(mine) > MANY:
                give_back(buffer)
        return b"".join(parts), self._sizes[index]

    def __reduce__(self) -> tuple[object, ...]:
        count = sum(len(places) for _, places in self._buffers)
        offsets, sizes = self._offsets[:count], self._sizes[:count]
        return _joined, (offsets, sizes, self(offsets)[0])


def _joined(offsets: Int64, sizes: Int64, data: bytes) -> MoofStore:
    places = np.cumsum(sizes) - sizes
    return MoofStore(offsets, sizes, [(memoryview(data), places)])


@record(frozen=True, slots=True)
class FragmentSamples:
    """The samples of fragments, from their moofs."""

    track: int
    fragments: FragmentTable
    moofs: MoofDecoder
    defaults: Mapping[int, SampleDefaults]

    def __call__(self, start: int, stop: int) -> SampleTable:
        """Of rows start to stop (exclusive)."""
        rows = self.fragments.rows(slice(start, stop))
        return samples_of(self.track, rows, self.moofs, self.defaults)


@record(frozen=True, slots=True)
class BothSamples:
    """Samples of virtual fragments from the moov, of those after them from their moofs.

    Attributes:
        runs: what the moov says.
        sample_start, sample_count: of the virtual fragments.
        rest: the samples of the others, whose rows count from 0.
    """

    runs: SampleRuns
    sample_start: Int64
    sample_count: Int64
    rest: SampleLoader

    def __call__(self, start: int, stop: int) -> SampleTable:
        """Of rows start to stop (exclusive)."""
        n = len(self.sample_start)
        parts = []
        if start < min(stop, n):
            last = min(stop, n) - 1
            end = int(self.sample_start[last] + self.sample_count[last])
            parts.append(self.runs.expand(int(self.sample_start[start]), end))
        if stop > n:
            parts.append(self.rest(max(start, n) - n, stop - n))
        return SampleTable.concat(parts)


MOST_MOOF = 64 << 20
"""Bytes of a moof; larger ones hold days of samples, or lie."""


class RowSamples:
    """The samples of rows of a fragment table.

    Args:
        source: the file; read where the index holds no samples: moofs of the wanted fragments, or
            the moov, once.
        init: ranges of the initialization segment.
    """

    def __init__(
        self,
        track: Track,
        source: Source,
        init: tuple[ByteRange, ...],
        defaults: Mapping[int, SampleDefaults],
    ) -> None:
        self._track, self._source = track, source
        self._init, self._defaults = init, defaults
        self._decoder = MoofDecoder(self._moofs)
        self._runs: SampleRuns | None = None
        # Where the index can give samples, it is asked; found out at the first question.
        self._own = track.has_samples

    def rows(self, start: int, stop: int) -> SampleTable:
        """The samples of rows `start` to `stop` (exclusive) of the fragment table.

        Raises:
            InexactIndex: neither the index nor the file tells the samples.
            TruncatedInput: the file ends within a moof that is needed.
        """
        if self._own:
            try:
                return self._track.samples_of(start, stop)
            except InexactIndex:
                self._own = False
        virtual = (self._track.fragments.flags[start:stop] & FragmentFlags.VIRTUAL) != 0
        parts = []
        for low, high in _stretches(virtual):
            part = self._of_moov if virtual[low] else self._of_moofs
            parts.append(part(start + low, start + high))
        return SampleTable.concat(parts)

    def _of_moofs(self, start: int, stop: int) -> SampleTable:
        rows = self._track.fragments.rows(slice(start, stop))
        return samples_of(self._track.id, rows, self._decoder, self._defaults)

    def _moofs(self, offsets: Int64) -> tuple[bytes, Int64]:
        parts = [read_moof(self._source, offset) for offset in offsets.tolist()]
        return b"".join(parts), np.array([len(part) for part in parts], np.int64)

    def _of_moov(self, start: int, stop: int) -> SampleTable:
        if self._runs is None:
            self._runs = self._read_runs()
        rows = self._track.fragments.rows(slice(start, stop))
        first = int(rows.sample_start[0])
        last = int(rows.sample_start[-1]) + int(rows.sample_count[-1])
        if not 0 <= first <= last <= self._runs.count:
            raise InexactIndex(
                "the moov has other samples than the index", advice="build the index again"
            )
        return self._runs.expand(first, last)

    def _read_runs(self) -> SampleRuns:
        for place in self._init:
            moov = find(parse(self._source.read(place)), "moov")
            stbl = sample_tables(moov).get(self._track.id) if moov is not None else None
            runs = None
            if stbl is not None:
                size = self._source.size
                runs = read_sample_runs(stbl, self._track.id, Findings(), file_end=size)
            if runs is not None:
                return runs
        raise InexactIndex(
            f"the samples of track {self._track.id} are in neither the index nor the moov",
            advice="build the index with exact=True",
        )


def read_moof(source: Source, offset: int) -> bytes:
    """The moof at a place.

    Raises:
        InexactIndex: there is none.
        TruncatedInput: the file ends within it.
    """
    header = read_header(source.read(ByteRange.of(offset, 8)))
    if header is None or header.type != b"moof" or not 8 <= header.size <= MOST_MOOF:
        raise InexactIndex(
            "there is no moof where the index says",
            offset=offset,
            advice="build the index again",
        )
    return source.read(ByteRange.of(offset, header.size))


def _stretches(flags: object) -> Iterator[tuple[int, int]]:
    """Places [low, high) of equal neighbours."""
    values = np.asarray(flags)
    edges = [0, *(np.flatnonzero(np.diff(values.astype(np.int8))) + 1).tolist(), len(values)]
    yield from pairwise(edges)
