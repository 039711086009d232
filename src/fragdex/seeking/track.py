"""One track of an index: its tables, and seeking in it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fragdex.errors import InexactIndex
from fragdex.fragments.groups import SampleGroup
from fragdex.fragments.table import NULL, FragmentTable, SampleTable, SyncTable
from fragdex.fragments.tracks import TrackInfo
from fragdex.seeking import show
from fragdex.seeking.seek import Hit, Hits, Seeker
from fragdex.seeking.times import Time, floor_ticks, floor_ticks_many, presentation

__all__ = ["SampleLoader", "TrackIndex", "TrackTables"]

SampleLoader = Callable[[int, int], SampleTable]
"""Rows start to stop of the fragment table → their samples."""


class TrackTables(NamedTuple):
    """The tables of one track, as `TrackIndex` has them.

    Attributes:
        fragments: one row a fragment, in file order.
        sync: the sync samples in presentation order.
        groups: `rap ` and `roll` sample groups.
        samples: every sample in decode order; None where they are not at hand.
    """

    fragments: FragmentTable
    sync: SyncTable
    groups: tuple[SampleGroup, ...] = ()
    samples: SampleTable | None = None


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
        "_deferred",
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
        self._deferred: Callable[[], TrackTables] | None = None

    @classmethod
    def deferred(
        cls,
        info: TrackInfo,
        tables: Callable[[], TrackTables],
        *,
        shift: Fraction,
        period: int,
        exact: bool,
    ) -> TrackIndex:
        """A track whose tables are asked for when they are first used.

        Args:
            info, shift, period, exact: as the attributes.
            tables: called until it returns, and not again; what it raises (`DamagedIndex`, for a
                saved index) is raised by whatever asks for a table. Two threads that ask at the
                same moment may both call it.

        >>> tables = TrackTables(FragmentTable.empty(), SyncTable.empty())
        >>> track = TrackIndex.deferred(
        ...     TrackInfo.unknown(1), lambda: tables, shift=Fraction(0), period=0, exact=True
        ... )
        >>> track.fragments is tables.fragments
        True
        """
        track = cls.__new__(cls)
        track.info, track.shift, track.period, track.exact = info, shift, period, exact
        track._load = track._seeker = None
        track._deferred = tables
        return track

    if not TYPE_CHECKING:  # to mypy, it would make every name an attribute

        def __getattr__(self, name: str) -> Any:
            """Only asked for a slot that is empty: the tables of a deferred track."""
            tables = self._deferred if name in ("fragments", "sync", "groups", "_samples") else None
            if tables is not None:
                self.fragments, self.sync, self.groups, self._samples = tables()
                self._deferred = None
            return object.__getattribute__(self, name)

    def __getstate__(self) -> object:
        """For copies and other processes: the tables, not where they are to come from."""
        _ = self.fragments
        return super().__getstate__()

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
            last = int(rows.sample_start[-1]) + int(rows.sample_count[-1])
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
            DamagedIndex: the tables of a saved index contradict each other.
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
