"""Which bytes a span of time needs, and what a seek would read."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import field
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from fragdex.byterange import ByteRange, coalesce
from fragdex.errors import InexactIndex, LimitExceeded, NoSyncSample
from fragdex.fragments.table import FragmentFlags, Int64
from fragdex.record import record
from fragdex.responses import Fields, Response, respond
from fragdex.seeking.origin import FileInfo
from fragdex.seeking.seek import Hit
from fragdex.seeking.times import TimeLike, exact_time, floor_ticks
from fragdex.sources import SourceLike

if TYPE_CHECKING:
    from fragdex.seeking.track import Track

__all__ = ["Plan", "Span", "plan", "span"]


_AT_ONCE: Final = 4 << 20
"""Bytes that are read at once."""
MOST_COUNTED = 1 << 20
"""Samples that are counted to say how many a seek decodes: a kilobyte may claim millions."""


@record(frozen=True, slots=True)
class Span:
    """The bytes that play a span of time.

    Attributes:
        init: ranges of the initialization segment, to be fetched first.
        media: merged ranges of whole fragments, in file order.
        clamped: the span begins before the presentation, or ends after it (an infinite end does
            not). If the span is entirely outside, `media` plays the nearest time.
        obstacle: why the bytes of `init` and then `media`, concatenated, do not play alone, and
            what does; "" if they do, as those of a fragmented file. An index from a sidx or mfra
            has not read the fragments, and assumes that they do.
        file: what the index knows of its file.
        media_type: `video/mp4`, or `audio/mp4` where there is no track of video.

    >>> span = Span((ByteRange(0, 2),), (ByteRange(4, 6),))
    >>> list(span)
    [ByteRange(start=0, stop=2), ByteRange(start=4, stop=6)]
    >>> span.read(b"abcdefgh")
    b'abef'
    """

    init: tuple[ByteRange, ...]
    media: tuple[ByteRange, ...]
    clamped: bool = False
    obstacle: str = ""
    file: FileInfo = field(default=FileInfo(), compare=False, repr=False)
    media_type: str = field(default="video/mp4", compare=False, repr=False)
    _columns: _Ranges | None = field(default=None, init=False, compare=False, repr=False)

    @classmethod
    def _of_columns(cls, columns: _Ranges, **others: Any) -> Span:
        """A span whose ranges become objects when they are looked at: they may be thousands."""
        span = object.__new__(cls)
        for name, value in {"_columns": columns, **others}.items():
            object.__setattr__(span, name, value)
        return span

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Requests for `media` that are columns still, and for unknown names."""
            if name != "media":
                raise AttributeError(f"a Span has no attribute {name!r}")
            columns = self._columns
            media = tuple(map(ByteRange, columns.start.tolist(), columns.stop.tolist()))
            object.__setattr__(self, "media", media)
            return media

    @property
    def plays(self) -> bool:
        """Whether the bytes of `init` and `media` play alone: there is no obstacle."""
        return not self.obstacle

    @property
    def size(self) -> int:
        """Bytes of media."""
        if (columns := self._columns) is not None:
            return int(columns.stop.sum() - columns.start.sum())
        return sum(part.size for part in self.media)

    def __iter__(self) -> Iterator[ByteRange]:
        """The ranges in the order in which a player needs them: `init`, then `media`."""
        return iter((*self.init, *self.media))

    def read(self, source: SourceLike | None = None) -> bytes:
        """The bytes of `init` and then `media`, all in memory.

        Args:
            source: the media in any form that `fragdex.open_source` takes; None: the file that
                the index was made from.

        Raises:
            SourceChanged: it is not the file that was indexed.
            SourceError: it cannot be read.
        """
        whole = ByteRange(0, sum(part.size for part in self))
        return b"".join(self.chunks(whole, source=source))

    def chunks(
        self, range: ByteRange, *, source: SourceLike | None = None
    ) -> Generator[bytes, None, None]:
        """The bytes of `read` in pieces, in bounded memory; raises as `read`.

        Args:
            range: bytes of the span, counted from 0; bytes after its end are left out.
            source: as of `read`; open until the last piece is taken, or `close()`.
        """
        with self.file.opened(source) as opened:
            at = 0
            for part in self:
                wanted = range.intersection(part.shift(at - part.start))
                while wanted is not None and wanted.size:
                    piece = ByteRange(wanted.start, min(wanted.stop, wanted.start + _AT_ONCE))
                    yield opened.read(piece.shift(part.start - at))
                    wanted = ByteRange(piece.stop, wanted.stop)
                at += part.size

    def respond(
        self, method: str, headers: Fields, *, source: SourceLike | None = None
    ) -> Response:
        """What a web server answers with the bytes of `init` and `media`; as `View.respond`.

        They play where `plays` says so; `obstacle` says what does where they do not.
        """
        import hashlib  # which seeks do without

        identity = repr(
            (self.file.size, self.file.etag, self.file.md5, self.file.mtime_ns, [*self])
        )
        return respond(
            method,
            headers,
            size=sum(part.size for part in self),
            etag=f'"{hashlib.md5(identity.encode(), usedforsecurity=False).hexdigest()}"',
            media_type=self.media_type,
            chunks=partial(self.chunks, source=source),
        )


@record(frozen=True, slots=True)
class Plan:
    """What a seek would read.

    Attributes:
        hits: where each track starts decoding.
        reads: merged byte ranges, without the initialization segment.
        init: ranges of the initialization segment, needed once.
        samples: track_ID → samples to decode up to and including the wanted one;
            None where the index has only fragments, or where there are more than 2^20 samples in
            the fragments to read, which only damage causes.
        why: one sentence a track.

    >>> Plan((), (ByteRange(0, 10),), (), {}, ()).bytes
    10
    """

    hits: tuple[Hit, ...]
    reads: tuple[ByteRange, ...]
    init: tuple[ByteRange, ...]
    samples: dict[int, int | None]
    why: tuple[str, ...]

    @property
    def requests(self) -> int:
        """Reads to make, without the initialization segment."""
        return len(self.reads)

    @property
    def bytes(self) -> int:
        """Bytes to read, without the initialization segment."""
        return sum(part.size for part in self.reads)


def span(
    tracks: Sequence[Track],
    init: tuple[ByteRange, ...],
    start: TimeLike,
    stop: TimeLike,
    max_gap: int,
    beside: Sequence[Track] = (),
    file: FileInfo = FileInfo(),  # noqa: B008 — frozen
) -> Span:
    """The fragments of all tracks from the sync sample at `start` until before `stop`.

    Args:
        init: the ranges of their initialization segment.
        start, stop, max_gap: as `Index.span` takes them.
        beside: all tracks that the same moovs describe.
    """
    begin, end = exact_time(start), exact_time(stop)
    if end < begin:
        raise ValueError(f"the span ends ({stop}) before it starts ({start})")
    starts: list[Int64] = []
    stops: list[Int64] = []
    flags = 0
    for track in tracks:
        hit = track.seek(begin)
        # A sample that starts exactly at `stop` is not played any more.
        high = -floor_ticks(-end, track.timescale, -track.shift) - 1
        last = track.extent.row_behind(hit.fragment, max(high, hit.cts))
        table, rows = track.fragments, slice(hit.fragment, last)
        begins = table.offset[rows]
        ends = begins + table.size[rows]
        if not (counts := table.sample_count[rows]).all():
            begins, ends = begins[counts != 0], ends[counts != 0]
        starts.append(begins)
        stops.append(ends)
        flags |= int(np.bitwise_or.reduce(table.flags[rows]))
    # Samples of the moov come before those of fragments.
    for track in beside:
        column = track.fragments.flags
        if len(column):
            flags |= int(column[0]) & _VIRTUAL
    every = list({id(track): track for track in (*tracks, *beside)}.values())
    media = _Ranges.merged(starts, stops).closed(every)
    if max_gap > 0:
        media = _Ranges.merged([media.start], [media.stop], max_gap)
    periods = len({track.period for track in tracks})
    obstacle = _obstacle(init, len(media.start), flags, periods)
    clamped = _reaches_out(tracks, begin, end)
    has_video = any(track.kind == "video" for track in tracks)
    return Span._of_columns(
        media,
        init=init,
        clamped=clamped,
        obstacle=obstacle,
        file=file,
        media_type="video/mp4" if has_video else "audio/mp4",
    )


class _Ranges(NamedTuple):
    """Ranges as columns, rising; none is empty, and none touches the next."""

    start: Int64
    stop: Int64

    @classmethod
    def merged(cls, starts: Sequence[Int64], stops: Sequence[Int64], max_gap: int = 0) -> _Ranges:
        """Ranges in any order as `coalesce` gives them."""
        start = np.concatenate(starts) if starts else _NONE
        stop = np.concatenate(stops) if stops else _NONE
        if len(start) <= FEW:
            lows: list[int] = []
            highs: list[int] = []
            for low, high in sorted(zip(start.tolist(), stop.tolist(), strict=True)):
                if lows and low < high and low - highs[-1] <= max_gap:
                    highs[-1] = max(highs[-1], high)
                elif low < high:
                    lows.append(low)
                    highs.append(high)
            return cls(np.array(lows, np.int64), np.array(highs, np.int64))
        if (start >= stop).any():
            some = start < stop
            start, stop = start[some], stop[some]
        if not len(start):
            return cls(start, stop)
        order = np.argsort(start, kind="stable")
        start, stop = start[order], np.maximum.accumulate(stop[order])
        heads = np.ones(len(start) + 1, np.bool_)
        np.greater(start[1:] - stop[:-1], max_gap, out=heads[1:-1])
        return cls(start[heads[:-1]], stop[heads[1:]])

    def closed(self, tracks: Sequence[Track]) -> _Ranges:
        """With what the moofs in them need, which may be after other moofs."""
        known = self
        for _ in range(MOST_TURNS):
            starts, stops = [known.start], [known.stop]
            for track in tracks:
                start, stop = known._outside(track)
                starts.append(start)
                stops.append(stop)
            if not sum(map(len, starts[1:])):
                return known
            more = _Ranges.merged(starts, stops)
            if np.array_equal(more.start, known.start) and np.array_equal(more.stop, known.stop):
                return known
            known = more
        # Each turn reaches into the next fragment: all that hang together are taken at once.
        start = np.concatenate([track.fragments.offset for track in tracks])
        stop = start + np.concatenate([track.fragments.size for track in tracks])
        order = np.argsort(start, kind="stable")
        start, stop = start[order], np.maximum.accumulate(stop[order])
        heads = np.append(0, np.flatnonzero(start[1:] >= stop[:-1]) + 1)
        starts_all, stops_all = start[heads], stop[np.append(heads[1:], len(start)) - 1]
        low = np.searchsorted(stops_all, known.start, side="right")
        _, rows = _rows_between(low, np.searchsorted(starts_all, known.stop, side="left"))
        return _Ranges.merged([known.start, starts_all[rows]], [known.stop, stops_all[rows]])

    def _outside(self, track: Track) -> tuple[Int64, Int64]:
        """Fragments of a track whose moof is in a range, and which are not wholly in it."""
        table = track.fragments
        moofs = table.moof_offset
        first, last = moofs.searchsorted(self.start), moofs.searchsorted(self.stop)
        which: int | Int64
        row: slice | Int64
        if len(first) == 1:
            which, row = 0, slice(int(first[0]), int(last[0]))
        else:
            which, row = _rows_between(first, last)
        start = table.offset[row]
        if not len(start):
            return _NONE, _NONE
        stop = start + table.size[row]
        out = (start < self.start[which]) | (stop > self.stop[which])
        if not out.any():
            return _NONE, _NONE
        out &= table.sample_count[row] != 0
        return start[out], stop[out]


_NONE: Final = np.zeros(0, np.int64)
FEW = 48
"""Ranges up to which a loop costs less than numpy's calls."""


def _rows_between(low: Int64, high: Int64) -> tuple[Int64, Int64]:
    """Rows from each `low` to its `high` (exclusive), and the number of the pair of each."""
    counts = np.maximum(high - low, 0)
    which = np.repeat(np.arange(len(counts)), counts)
    rows: Int64 = np.arange(len(which)) + np.repeat(low - (np.cumsum(counts) - counts), counts)
    return which, rows


# As plain numbers: those of an enumeration cost a microsecond each.
_VIRTUAL: Final = int(FragmentFlags.VIRTUAL)
_ELSEWHERE: Final = int(FragmentFlags.DECLARED_BASE | FragmentFlags.REPAIRED)
_OUTSIDE: Final = int(FragmentFlags.OUTSIDE)
MOST_TURNS = 8
"""Times that ranges are widened by what the moofs in them need; most files need none."""
_VIEW = "fragdex.clip(index, start, stop) makes a file that plays this span"


def _obstacle(init: Sequence[ByteRange], ranges: int, flags: int, periods: int) -> str:
    """Why ranges do not play alone; "" where they do."""
    if periods > 1:
        return (
            "the tracks are of several periods, each with a moov of its own: ask index.of_period(0)"
        )
    if not init:
        return "there is no initialization segment: give players that of the stream"
    if not ranges:
        return "there are no media"
    if flags & _VIRTUAL:
        return f"the moov names samples by their places in the whole file: {_VIEW}"
    if flags & _ELSEWHERE:
        return f"fragments name their samples by places in the whole file: {_VIEW}"
    if flags & _OUTSIDE:
        return f"samples lie outside their fragments: {_VIEW}"
    return ""


def _reaches_out(tracks: Sequence[Track], begin: Fraction | float, end: Fraction | float) -> bool:
    """Whether a span begins before the first track, or continues after the last."""
    edges = [track.derived(_edges) for track in tracks]
    starts = [start for start, _ in edges if start is not None]
    stops = [stop for _, stop in edges if stop is not None]
    # Where the first of them holds it, no least one of all must be found.
    if stops and all(begin >= stop for stop in stops):
        return True
    if stops and end < math.inf and all(end > stop for stop in stops):
        return True
    return bool(starts) and all(begin < start for start in starts)


def _edges(track: Track) -> tuple[Fraction | None, Fraction | None]:
    start, stop = track.start, track.stop
    return None if start is None else start.fraction, None if stop is None else stop.fraction


def plan(tracks: Sequence[Track], init: tuple[ByteRange, ...], time: TimeLike) -> Plan:
    """What has to be read and decoded to show a time in all tracks."""
    time = exact_time(time)
    hits: list[Hit] = []
    ranges: list[ByteRange] = []
    why: list[str] = []
    samples: dict[int, int | None] = {}
    for track in tracks:
        try:
            hit = track.seek(time)
        except NoSyncSample:
            continue
        hits.append(hit)
        target = max(floor_ticks(time, track.timescale, track.shift), hit.cts)
        last = track.extent.row_behind(hit.fragment, target)
        rows = track.fragments.rows(slice(hit.fragment, last))
        ends = rows.offset + rows.size
        ranges += map(ByteRange, rows.offset.tolist(), ends.tolist())
        samples[track.id] = _to_decode(track, hit, last, target)
        why.append(_why(track, hit, last, samples[track.id]))
    return Plan(tuple(hits), tuple(coalesce(ranges)), init, samples, tuple(why))


def _to_decode(track: Track, hit: Hit, last: int, target: int) -> int | None:
    if hit.sample is None or not track.has_samples:
        return None
    if int(track.fragments.sample_count[hit.fragment : last].sum()) > MOST_COUNTED:
        return None
    try:
        table = track.samples_of(hit.fragment, last)
    except (InexactIndex, LimitExceeded):
        return None
    first = hit.sample - int(track.fragments.sample_start[hit.fragment])
    cts = table.cts[first:]
    shown = cts[cts <= target]
    if not len(shown):
        return 1
    # The sample on show is the latest one; everything before it in decode order may be needed.
    return int(np.flatnonzero(cts == shown.max())[0]) + 1


def _why(track: Track, hit: Hit, last: int, samples: int | None) -> str:
    rows = last - hit.fragment
    fragments = f"{rows} fragments" if rows > 1 else "1 fragment"
    text = (
        f"track {track.id}: sync sample at {hit.time.seconds:.3f} s in fragment {hit.fragment}; "
        f"{fragments} to read"
    )
    if samples is not None:
        text += f", {samples:,} sample{'s' if samples != 1 else ''} to decode"
    if hit.clamped:
        text += " (the time is outside the track)"
    return text
