"""The index of a file: what it knows, and the questions it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.byterange import ByteRange
from fragdex.errors import InexactIndex, TrackNotFound
from fragdex.fragments.findings import Finding
from fragdex.fragments.groups import SampleGroup
from fragdex.fragments.table import NULL, FragmentTable, SampleTable, SyncTable
from fragdex.fragments.tracks import Movie, TrackInfo
from fragdex.seeking import plan, registry, show
from fragdex.seeking.seek import Hit, Hits, Seeker
from fragdex.seeking.times import Time, floor_ticks, floor_ticks_many, presentation

__all__ = ["FragmentIndex", "How", "Period", "SampleGroup", "SourceInfo", "TrackIndex"]

SampleLoader = Callable[[int, int], SampleTable]
"""Rows start to stop of the fragment table → their samples."""


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """Which bytes an index describes.

    Attributes:
        name: path or URL as it was given; "" for bytes and streams.
        size: bytes, or None while the end is unknown.
        md5: 32 hex digits, or None where it was not asked for.
        etag: the server's entity tag, or None.

    >>> SourceInfo("movie.mp4", 1024).size
    1024
    """

    name: str = ""
    size: int | None = None
    md5: str | None = None
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class How:
    """How an index came to be, and what it cost.

    Attributes:
        method: `boxes` (every moof was read), `sidx`, `mfra`, `stbl` (progressive),
            `stbl+boxes` (hybrid) or `index` (a saved form that does not say).
        exact: whether every sample is known.
        reason: one sentence on why this way was taken.
        requests: reads that the source answered.
        bytes_read: bytes that were read, box headers included.
        mdat_bytes_read: bytes of media data that were read; 0 unless they came along in a read
            of a few KiB at the start or the end.

    >>> How("boxes", True, "no sidx and no mfra").exact
    True
    """

    method: str
    exact: bool
    reason: str = ""
    requests: int = 0
    bytes_read: int = 0
    mdat_bytes_read: int = 0


class TrackIndex:
    """One track of one period: its tables, and seeking in it.

    Attributes:
        info: what the moov says of it (`TrackInfo`); its fields `id`, `kind`, `timescale`,
            `codec` are at hand here too.
        period: number of the period it belongs to, from 0.
        fragments: `FragmentTable`, one row a fragment, in file order.
        sync: `SyncTable`, the sync samples in presentation order.
        groups: `rap ` and `roll` sample groups, beside `sync` and never mixed with it.
        shift: ticks to add to a composition time to get the presentation time.
        exact: whether every sample is known.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> track = fragdex.index(movie(fragments=3, samples=5, fps=25)).track(1)
    >>> track.kind, track.sample_count, track.seek(0.5).time.seconds
    ('video', 15, 0.4)
    """

    __slots__ = (
        "_load",
        "_samples",
        "_seeker",
        "exact",
        "fragments",
        "groups",
        "info",
        "period",
        "shift",
        "sync",
    )

    def __init__(
        self,
        info: TrackInfo,
        fragments: FragmentTable,
        sync: SyncTable,
        *,
        shift: Fraction = Fraction(0),
        period: int = 0,
        exact: bool = True,
        groups: tuple[SampleGroup, ...] = (),
        load_samples: SampleLoader | None = None,
        samples: SampleTable | None = None,
    ) -> None:
        self.info, self.fragments, self.sync = info, fragments, sync
        self.shift, self.period, self.exact, self.groups = shift, period, exact, groups
        self._load, self._samples = load_samples, samples
        self._seeker: Seeker | None = None

    @property
    def id(self) -> int:
        """track_ID."""
        return self.info.id

    @property
    def kind(self) -> str:
        """video, audio, text, metadata, timecode, hint or other."""
        return self.info.kind

    @property
    def timescale(self) -> int:
        """Ticks a second; 0: unknown."""
        return self.info.timescale

    @property
    def codec(self) -> str | None:
        """RFC 6381 codec string."""
        return self.info.codec

    @property
    def sample_count(self) -> int | None:
        """Samples in the track, or None where the index knows fragments only."""
        counts = self.fragments.sample_count
        return None if (counts == NULL).any() else int(counts.sum())

    @property
    def has_samples(self) -> bool:
        """Whether `samples` can be had."""
        return self._samples is not None or self._load is not None

    @property
    def samples(self) -> SampleTable:
        """Every sample, in decode order; made at the first call and kept.

        Raises:
            InexactIndex: this index holds fragments only.
        """
        if self._samples is None:
            self._samples = self.samples_of(0, len(self.fragments))
        return self._samples

    def samples_of(self, start: int, stop: int) -> SampleTable:
        """The samples of rows `start` (inclusive) to `stop` (exclusive) of the fragment table.

        Raises:
            InexactIndex: this index holds fragments only.
        """
        if self._samples is not None:
            rows = self.fragments.rows(slice(start, stop))
            if not len(rows):
                return SampleTable.empty()
            first = int(rows.sample_start[0])
            last = int(rows.sample_start[-1] + rows.sample_count[-1])
            return self._samples.rows(slice(first, last))
        if self._load is None:
            raise InexactIndex(
                f"the samples of track {self.id} are not in this index",
                advice="build it with exact=True, or save it with samples=True",
            )
        return self._load(start, stop)

    def presentation(self, cts: int) -> Time:
        """Presentation time of a composition time in ticks."""
        return presentation(cts, self.shift, self.timescale)

    @property
    def start(self) -> Time | None:
        """Least presentation time; None where it is unknown."""
        return self._edge(self.fragments.cts_min, min)

    @property
    def end(self) -> Time | None:
        """Greatest presentation time plus duration (exclusive); None where it is unknown."""
        return self._edge(self.fragments.cts_end, max)

    def _edge(self, column: npt.NDArray[np.int64], pick: Callable[[Any], Any]) -> Time | None:
        known = column[(column != NULL) & (self.fragments.sample_count != 0)]
        if not len(known) or not self.timescale:
            return None
        return self.presentation(int(pick(known)))

    def seek(self, time: Any) -> Hit:
        """The last sync sample with a presentation time at or before `time`.

        Args:
            time: seconds of presentation time: int, float, Fraction, Decimal or `Time`, taken as
                the exact number it is.

        Before the first sync sample it gives the first, at or after the end the last, both
        marked `clamped`.

        Raises:
            ValueError: the time is NaN.
            NoSyncSample: there is no sync sample in this track.
            InexactIndex: the timescale is unknown, so that seconds mean nothing.
        """
        seeker = self._seeker or self._ready()
        target = floor_ticks(time, self.info.timescale, self.shift)
        row, sample, offset, size, cts, dts, clamped = seeker.find(target)
        return Hit(
            self.info.id,
            row,
            None if sample == NULL else sample,
            offset,
            size,
            cts,
            None if dts == NULL else dts,
            clamped,
            self.shift,
            self.info.timescale,
        )

    def seek_many(self, times: npt.ArrayLike) -> Hits:
        """`seek` for an array of float seconds, about a hundred times faster each.

        Raises: as `seek`.
        """
        seeker = self._seeker or self._ready()
        seconds = np.asarray(times, np.float64).ravel()
        return seeker.find_many(floor_ticks_many(seconds, self.info.timescale, self.shift))

    def _ready(self) -> Seeker:
        if not self.info.timescale:
            raise InexactIndex(
                f"the timescale of track {self.id} is unknown, so seconds mean nothing",
                advice="give the initialization segment with init=",
            )
        self._seeker = Seeker(self.fragments, self.sync)
        return self._seeker

    def __repr__(self) -> str:
        return show.track_line(self)


@dataclass(frozen=True, slots=True)
class Period:
    """What one moov governs: from it to the next moov (or the whole file where there is none).

    Attributes:
        number: from 0, in file order.
        init: byte ranges of the initialization segment (ftyp and moov), in file order; empty
            where there is none.
        movie: what the moov says.
        tracks: in moov order, then tracks met in fragments alone.
    """

    number: int
    init: tuple[ByteRange, ...]
    movie: Movie
    tracks: tuple[TrackIndex, ...]

    def track(self, track_id: int) -> TrackIndex:
        """The track of this id.

        Raises:
            TrackNotFound: there is none.
        """
        for track in self.tracks:
            if track.id == track_id:
                return track
        raise TrackNotFound(
            f"there is no track {track_id}",
            expected="one of " + (", ".join(str(t.id) for t in self.tracks) or "none"),
            found=track_id,
        )


class FragmentIndex:
    """The index of one file.

    Attributes:
        source: which bytes it describes.
        how: the way it was made and what that cost.
        periods: one for each moov; nearly always one.
        findings: what was odd about the file, in file order.
        complete: False where the file is truncated or still growing.
        resume_offset: where `extend` goes on: the first byte that is not indexed yet.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> index = fragdex.index(movie(fragments=3, samples=5, fps=25))
    >>> len(index.track(1).fragments), index.duration, index.complete
    (3, 0.6, True)
    """

    __slots__ = ("complete", "findings", "how", "periods", "resume_offset", "source")

    def __init__(
        self,
        source: SourceInfo,
        how: How,
        periods: Iterable[Period],
        *,
        findings: Iterable[Finding] = (),
        complete: bool = True,
        resume_offset: int = 0,
    ) -> None:
        self.source, self.how = source, how
        self.periods, self.findings = tuple(periods), tuple(findings)
        self.complete, self.resume_offset = complete, resume_offset

    @property
    def tracks(self) -> tuple[TrackIndex, ...]:
        """The tracks of all periods, in file order."""
        return tuple(track for period in self.periods for track in period.tracks)

    def track(self, track_id: int) -> TrackIndex:
        """The track of this id.

        Raises:
            TrackNotFound: there is none, or one in each of several periods; then ask
                `index.periods[i].track(id)`.
        """
        found = [track for track in self.tracks if track.id == track_id]
        if len(found) == 1:
            return found[0]
        if found:
            raise TrackNotFound(
                f"track {track_id} stands in {len(found)} periods",
                advice=f"ask index.periods[i].track({track_id})",
            )
        known = ", ".join(str(track.id) for track in self.tracks) or "none"
        raise TrackNotFound(
            f"there is no track {track_id}", expected=f"one of {known}", found=track_id
        )

    @property
    def exact(self) -> bool:
        """Whether every sample of every track is known."""
        return all(track.exact for track in self.tracks)

    @property
    def duration(self) -> float | None:
        """Seconds from the first to the last presentation time of all tracks, or None."""
        spans = [(t.start, t.end) for t in self.tracks]
        known = [(float(a), float(b)) for a, b in spans if a is not None and b is not None]
        if not known:
            return None
        return max(end for _, end in known) - min(start for start, _ in known)

    def ranges(
        self, start: Any, stop: Any, *, tracks: Iterable[int] | None = None, max_gap: int = 0
    ) -> plan.Span:
        """The bytes that play a span of presentation time.

        Args:
            start: seconds, inclusive; decoding starts at the sync sample at or before it.
            stop: seconds, exclusive.
            tracks: track ids; None: all.
            max_gap: ranges that lie at most so many bytes apart are merged.

        Returns: a `Span`: `init` (ranges of the initialization segment), `media` (merged ranges in
        file order).

        Raises: as `TrackIndex.seek`; ValueError where stop lies before start.
        """
        return plan.span(self._chosen(tracks), self._inits(tracks), start, stop, max_gap)

    def plan(self, time: Any, *, tracks: Iterable[int] | None = None) -> plan.Plan:
        """What a seek would read: requests, bytes, samples to decode, and why.

        Raises: as `TrackIndex.seek`.
        """
        return plan.plan(self._chosen(tracks), self._inits(tracks), time)

    def _chosen(self, tracks: Iterable[int] | None) -> list[TrackIndex]:
        if tracks is not None:
            return [self.track(track_id) for track_id in tracks]
        return [track for track in self.tracks if track.timescale and len(track.sync)]

    def _inits(self, tracks: Iterable[int] | None) -> tuple[ByteRange, ...]:
        periods = {track.period for track in self._chosen(tracks)}
        return tuple(r for period in self.periods if period.number in periods for r in period.init)

    def save(self, path: str | Path, *, samples: bool = False) -> None:
        """Write the binary index (docs/index-format.md): atomically, never half a file.

        Args:
            path: where to; an older file there is replaced at the very end.
            samples: put the sample tables in as well.
        """
        registry.offered("save")(self, path, samples=samples)

    def export(self, form: str, **options: Any) -> bytes:
        """The index in another form, as bytes.

        Args:
            form: fidx, json, sidx, mfra, hls, dash, arrow, parquet, torchcodec or csv.
            options: what the form takes; see docs/cli.md.

        Raises:
            ValueError: there is no such form.
            InexactIndex: the form needs samples that this index does not hold.
        """
        exported: bytes = registry.offered("export")(self, form, **options)
        return exported

    def extend(self, source: Any) -> FragmentIndex:
        """The index of a file that has grown, going on from `resume_offset`.

        Args:
            source: the grown file, in any form that `fragdex.index` takes.

        Raises:
            SourceChanged: it is shorter than what is indexed already.
        """
        grown: FragmentIndex = registry.offered("extend")(self, source)
        return grown

    def __repr__(self) -> str:
        return show.index_text(self)

    def _repr_html_(self) -> str:
        return show.index_html(self)
