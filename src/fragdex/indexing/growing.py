"""Indexes of files that are not whole yet, or of parts of them.

`Indexer` is fed bytes as they arrive. `extend` continues with the index of a file that has grown:
the last fragment that is known is read again, since what has come may belong to it; all before it
stays. That holds for regular files alone: where fragments are odd (a finding names them), share
media data with others, or a moov has come, the grown file is indexed again, so that growing step
by step never gives another answer than indexing the whole.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.errors import InexactIndex, SourceChanged
from fragdex.fragments.findings import Finding, Findings
from fragdex.fragments.table import (
    NULL,
    FragmentFlags,
    FragmentTable,
    Int64,
    SampleTable,
    SyncTable,
)
from fragdex.indexing.making import finished, index_source, read_init
from fragdex.indexing.periods import Moov
from fragdex.indexing.reading import read_on
from fragdex.indexing.resolve import TrackState
from fragdex.indexing.scan import FTYP, MOOV, Captured, Scan
from fragdex.indexing.shown import OF_ALL_ROWS, settled_shift
from fragdex.indexing.sync import expanded, merged
from fragdex.record import record
from fragdex.seeking.model import FileInfo, Index, Period, SampleLoader, Track
from fragdex.sources import Source, SourceLike, open_source

if TYPE_CHECKING:
    from fragdex.digest import Md5

__all__ = ["Indexer", "continued", "exact_part", "extend", "part_of"]

AT_ONCE = 1 << 12
"""Bytes of small pieces that are gathered: to read one fragment costs as much as to read ten."""


class Indexer:
    """Takes pieces of a file in any size as they arrive; stores no media.

    Args:
        md5: hash the bytes too; they must then arrive in order and without gaps.
        init: the initialization segment of a segment without moov.
        strict: as in `fragdex.index`.

    `feed` takes bytes; `need` is the next range that is needed, for sources that can seek;
    `finish` returns the index.

    >>> from fragdex.testing import movie
    >>> data = movie(fragments=2)
    >>> indexer = Indexer()
    >>> for at in range(0, len(data), 100):
    ...     indexer.feed(data[at : at + 100])
    >>> len(indexer.finish().track(1).fragments)
    2
    """

    def __init__(
        self,
        *,
        md5: bool = False,
        init: SourceLike | Index | None = None,
        strict: bool = False,
    ) -> None:
        self._init = read_init(init) if init is not None else None
        defaults = None
        if self._init is not None:
            movie = self._init[1]
            defaults = {t.id: t.defaults for t in movie.tracks if t.defaults is not None}
        self._scan = Scan(defaults=defaults)
        self._md5: Md5 | None = None
        if md5:
            from fragdex.digest import Md5

            self._md5 = Md5()
        self._strict = strict
        self._size = 0
        self._fed = 0
        self._gathered = bytearray()
        self._gathered_at = 0
        self._small_end: int | None = None

    @property
    def need(self) -> ByteRange | None:
        """The least range that is needed to continue; None where the file may end.

        >>> Indexer().need
        ByteRange(start=0, stop=8)
        """
        self._flush()
        return self._scan.need

    @property
    def position(self) -> int:
        """Bytes from the start of the file up to which its boxes are known."""
        self._flush()
        return self._scan.position

    def feed(self, data: bytes | bytearray | memoryview, offset: int | None = None) -> None:
        """Take a piece of the file.

        Args:
            data: any number of bytes.
            offset: their position in the file; None: directly after the piece before.

        What is wrong with small pieces may be raised by a later call, `need` and `position` too.

        Raises:
            ValueError: needed bytes between the last piece and this one are missing, or the file
                is hashed and this piece does not follow the one before.
            LimitExceeded: a box that must be kept is larger than a named limit.
            MalformedBox: a moov breaks the rules.
        """
        at = self._fed if offset is None else offset
        if self._md5 is not None:
            if at != self._fed:
                raise ValueError(f"to be hashed, bytes must follow: {self._fed} expected, not {at}")
            self._md5.update(data)
        size = memoryview(data).nbytes
        self._fed = at + size
        self._size = max(self._size, self._fed)
        follows, self._small_end = at == self._small_end, self._fed if size < AT_ONCE else None
        if not follows or size >= AT_ONCE or self._scan.need is None:
            self._flush()
            self._scan.feed(data, at)
            return
        if not self._gathered:
            self._gathered_at = at
        self._gathered += memoryview(data).cast("B")
        if len(self._gathered) >= AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        """Read the small pieces that were gathered."""
        if self._gathered:
            data, self._gathered = self._gathered, bytearray()
            self._scan.feed(data, self._gathered_at)

    def finish(self, size: int | None = None) -> Index:
        """The index of what was fed.

        Args:
            size: bytes of the file, where the last ones were jumped over.

        Raises: as `fragdex.index`.
        """
        self._flush()
        end = self._size if size is None else size
        md5 = self._md5.digest() if self._md5 is not None else None
        info = FileInfo("", end, md5)
        return finished(self._scan, None, size=end, info=info, init=self._init, strict=self._strict)


READ_AHEAD = 1 << 14
"""Bytes requested at least: a moof, and the header after it."""


def exact_part(index: Index, source: Source, part: ByteRange) -> Index:
    """The index of the fragments in `part`, with their samples.

    What lies between the initialization segment and them is taken for free space and never read;
    numbers of samples count from the first of them, times are those of the whole file.

    Args:
        index: of the whole file; it need not be exact.
        part: bytes from the start of a fragment to the end of one.

    Raises:
        InexactIndex: the fragments do not say when they are decoded, or several moovs govern them.
        MalformedBox: there is no fragment where the index says.
    """
    if len(index.periods) != 1 or not index.periods[0].init:
        raise InexactIndex(
            "parts of this file cannot be indexed", advice="build the index with exact=True"
        )
    indexer = Indexer()
    known = [*index.periods[0].init, part]
    while (need := indexer.need) is not None and need.start < part.stop:
        place = next((block for block in known if need.start < block.stop), part)
        if need.start < place.start:
            indexer.feed(_free(place.start - need.start), need.start)
            continue
        wanted = ByteRange(need.start, max(need.stop, need.start + READ_AHEAD))
        read = source.read(ByteRange(wanted.start, min(wanted.stop, place.stop)))
        indexer.feed(read, need.start)
    exact = indexer.finish(part.stop)
    flags = [track.fragments.flags for track in exact.tracks]
    if any((column & FragmentFlags.NO_TFDT).any() for column in flags):
        raise InexactIndex(
            "fragments have no decode times, so all fragments before them are needed",
            advice="build the index with exact=True",
        )
    exact.file = index.file
    return exact


AGEING = frozenset({"data-outside", "samples-past-end"})
"""Findings about a moov that a larger file may settle."""


def _free(size: int) -> bytes:
    """The header of a box of so many bytes that nobody looks into."""
    if size >> 32:
        return b"\0\0\0\1free" + size.to_bytes(8, "big")
    return size.to_bytes(4, "big") + b"free"


def extend(index: Index, what: SourceLike) -> Index:
    """The index of a file that has grown: the one that indexing all of it would give.

    Of a regular file only the last known fragment and what lies after it are read; where that
    cannot be enough, the file is indexed again. Digests of pieces that have not grown are kept, and
    the others made. What `strict` and `partial` asked of the index before does not hold for the new
    one.

    Raises:
        SourceChanged: the file is shorter than what is indexed already.
    """
    source = open_source(what)
    try:
        size = source.size
        if size is not None and size < index.resume_offset:
            raise SourceChanged(
                f"{source.name or 'the source'} is shorter than what is indexed already",
                expected=f"at least {index.resume_offset} bytes",
                found=size,
                advice="index it again",
            )
        if size is not None and size == index.file.size:
            return index
        grown = continued(index, source)
        if grown is None:
            init = _given(index.periods[0]) if not index.periods[0].init else None
            grown = index_source(source, init, exact=index.how.exact)
        if index.digests is not None and grown.file.size is not None:
            from fragdex.indexing.piece_digests import digests_of_grown, edges_of

            edges = edges_of(grown, grown.file.size)
            grown.digests = digests_of_grown(index.digests, source, edges)
        return grown
    finally:
        if source is not what:
            source.close()


def continued(index: Index, source: Source) -> Index | None:
    """The index, with what has come; None where the whole file must be seen.

    It costs what the index has, and what has come.
    """
    period = index.periods[-1]
    tables = [track.fragments for track in period.tracks if len(track.fragments)]
    lasts = [(int(t.moof_offset[-1]), int(t.offset[-1])) for t in tables]
    moof, start = max((last for last in lasts if last[0] != NULL), default=(NULL, 0))
    if moof == NULL or not _regular(index, start):
        return None
    states = {track.id: _state(track.fragments, moof) for track in period.tracks}
    counts = {track: (state.rows, state.samples) for track, state in states.items()}
    defaults = {t.id: t.info.defaults for t in period.tracks if t.info.defaults is not None}
    scan = Scan(start, defaults, states)
    read_on(source, scan)
    if any(box.type in (MOOV, FTYP) for box in scan.captured):
        return None
    more = finished(scan, source, init=_given(period), going_on=True)
    if not all(map(_about_moov, more.findings)) or scan.sections[0].grouped:
        return None
    news = {track.id: track for track in more.periods[0].tracks}
    known = {track.id for track in period.tracks}
    tracks = [_one(t, news[t.id], *counts[t.id]) if t.id in news else t for t in period.tracks]
    tracks += [track for track in news.values() if track.id not in known]
    described: dict[int, int] = {}
    for place, info in enumerate(period.movie.tracks):
        described.setdefault(info.id, place)
    tracks.sort(key=lambda t: (0, described[t.id]) if t.id in described else (1, t.id))
    stale = {"truncated", *OF_ALL_ROWS}
    findings = Findings(tuple(f for f in index.findings if f.code not in stale))
    for f in more.findings:
        # What is odd about a track as a whole is known, where the track is.
        if f.track not in known and f.code not in OF_ALL_ROWS:
            findings.add(
                f.code, f.message, offset=f.offset, path=f.path, track=f.track, count=f.count
            )
    for track in tracks:
        load = track._load or track.samples_of
        track.shift = settled_shift(track.info, period.movie, track.fragments, load, findings)
    return Index(
        replace(more.file, name=more.file.name or index.file.name),
        replace(more.how, method=index.how.method, reason=index.how.reason),
        (*index.periods[:-1], replace(period, tracks=tuple(tracks))),
        findings=findings.all(),
        complete=more.complete,
        resume_offset=more.resume_offset,
    )


def part_of(index: Index, start: int, stop: int | None = None) -> Index | None:
    """The index of some fragments of the last period alone; None where that of all is needed.

    `extend` continues it as it does the whole, and costs what such a part costs. It has no sync
    samples: it is for those who need all samples, or none.

    Args:
        index: one that knows its samples.
        start: byte at which the first moof begins.
        stop: that at which the one after the last begins; None: to the end.
    """
    period = index.periods[-1]
    if not _regular(index, start):
        return None
    tracks = []
    for track in period.tracks:
        rows = track.fragments
        if len(rows) and rows.flags[0] & FragmentFlags.VIRTUAL:
            return None
        first = int(np.searchsorted(rows.moof_offset, start))
        last = len(rows) if stop is None else int(np.searchsorted(rows.moof_offset, stop))
        if len(rows) and first == len(rows):
            return None  # where it continues, only the rows before say
        part = rows.rows(slice(first, last))
        before = int(part.sample_start[0]) if len(part) else 0
        tracks.append(
            Track(
                track.info,
                replace(part, sample_start=part.sample_start - before),
                SyncTable.empty(),
                shift=track.shift,
                movie_timescale=track.movie_timescale,
                period=track.period,
                exact=track.exact,
                samples=track.samples_of(first, last),
            )
        )
    findings = tuple(one for one in index.findings if one.code != "truncated")
    if stop is None:
        findings = index.findings
    return Index(
        index.file,
        index.how,
        (replace(period, tracks=tuple(tracks)),),
        findings=findings,
        complete=index.complete or stop is not None,
        resume_offset=index.resume_offset if stop is None else stop,
    )


def _given(period: Period) -> Moov | None:
    """The values of a moov that is not in what is read, in the form of one that is."""
    if not period.movie.tracks:
        return None
    return Captured(0, MOOV, b""), period.movie


def _regular(index: Index, start: int) -> bool:
    """Whether nothing that comes can change what is known of the fragments before `start`."""
    period = index.periods[-1]
    return (
        index.how.exact
        and all(map(_about_moov, index.findings))
        # A moov after its fragments governs them as well.
        and all(part.stop <= start for part in period.init)
        and not any(track.groups for track in period.tracks)
        # Whose media data before a moof are, the next moof decides.
        and not any(
            ((rows.data_start != NULL) & (rows.data_start < rows.moof_offset)).any()
            for rows in (track.fragments for track in period.tracks)
        )
    )


def _about_moov(finding: Finding) -> bool:
    """Whether it is about a moov, or about the cut, and not about fragments."""
    if finding.code == "truncated":
        return True
    return (finding.path or "").startswith("moov/") and finding.code not in AGEING


def _state(rows: FragmentTable, moof: int) -> TrackState:
    """Where a track stood before a fragment; virtual ones, of moof_offset NULL, come first."""
    first = int(np.searchsorted(rows.moof_offset, moof))
    if first < len(rows):
        return TrackState(int(rows.dts[first]), int(rows.sample_start[first]), first)
    if not first:
        return TrackState()
    end = int(rows.sample_start[-1] + rows.sample_count[-1])
    return TrackState(int(rows.dts[-1] + rows.duration[-1]), end, first)


def _one(old: Track, new: Track, rows: int, samples: int) -> Track:
    """A track of its first rows, with so many samples, and of those that were read."""
    rows_kept = old.fragments.rows(slice(rows))
    fragments = FragmentTable.concat([rows_kept, new.fragments])
    sync = merged(
        [_before(old.sync_samples, samples, rows_kept.sample_start), new.sync_samples],
        fragments.sample_start,
    )
    load = _Pieces.of(old, rows).then(new._load or new.samples_of) if old.has_samples else None
    return Track(
        old.info,
        fragments,
        sync,
        shift=old.shift,
        movie_timescale=old.movie_timescale,
        period=old.period,
        exact=old.exact,
        load_samples=load,
    )


def _before(sync: SyncTable, sample: int, sample_start: Any) -> SyncTable:
    """The sync samples before a sample of the track."""
    last = sync.sample + (sync.count - 1) * sync.sample_step
    low = np.minimum(sync.sample, last)
    rising = sync.rows((low < sample) & (sync.sample == low))
    step = np.maximum(rising.sample_step, 1)
    count = np.minimum(rising.count, -((rising.sample - sample) // step))
    rising = SyncTable.of(rising.columns() | {"count": count})
    # Where decode order and presentation order differ; such runs are short.
    falling = expanded(sync.rows((low < sample) & (sync.sample != low)), sample_start)
    return SyncTable.concat([rising, falling.rows(falling.sample < sample)])


@record(frozen=True, slots=True)
class _Loaded:
    """Samples that are in memory."""

    samples: SampleTable
    starts: Int64
    rows: int

    def __call__(self, start: int, stop: int) -> SampleTable:
        low, high = (
            int(self.starts[row]) if row < self.rows else len(self.samples) for row in (start, stop)
        )
        return self.samples.rows(slice(low, high))


@record(frozen=True, slots=True)
class _Pieces:
    """Samples of a track that was indexed piece by piece, however many they are.

    Attributes:
        starts: first row of each piece, and the row after the last one.
        loads: rows of a piece, counted from its own first one → their samples.
    """

    starts: tuple[int, ...]
    loads: tuple[SampleLoader, ...]

    @classmethod
    def of(cls, track: Track, rows: int) -> _Pieces:
        """The first rows of a track."""
        if track.samples_ready:  # what they were made from is no longer needed
            table = track.fragments
            return cls((0, rows), (_Loaded(track.samples, table.sample_start, len(table)),))
        load = track._load  # a chain of indexes, each asking the one before, would only grow
        if not isinstance(load, cls):
            return cls((0, rows), (load or track.samples_of,))
        pieces = [n for n, start in enumerate(load.starts[:-1]) if start < rows]
        return cls((*(load.starts[n] for n in pieces), rows), tuple(load.loads[n] for n in pieces))

    def then(self, load: SampleLoader) -> _Pieces:
        """With a piece after the last one."""
        return _Pieces((*self.starts, 1 << 62), (*self.loads, load))

    def __call__(self, start: int, stop: int) -> SampleTable:
        spans = zip(pairwise(self.starts), self.loads, strict=True)
        parts = [
            load(max(start, first) - first, min(stop, last) - first)
            for (first, last), load in spans
            if start < last and first < stop
        ]
        return SampleTable.concat(parts)
