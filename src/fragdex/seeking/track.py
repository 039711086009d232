"""One track of an index: its tables, and seeking in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from fragdex.errors import InexactIndex, LimitExceeded
from fragdex.fragments.table import NULL, FragmentTable, SampleTable, SyncTable
from fragdex.fragments.track_info import DESCRIPTION, SampleGroup, Segment, TrackInfo
from fragdex.record import record
from fragdex.seeking.forms import offered
from fragdex.seeking.seek import Extent, Finder, Hit, Hits, Seeker, hits_of
from fragdex.seeking.times import Time, TimeLike, floor_ticks, presentation, ticks_of_many
from fragdex.sources import SourceLike

if TYPE_CHECKING:
    from fragdex.formats.fidx import SavedTables
    from fragdex.seeking.origin import Home


T = TypeVar("T")
AT_ONCE = 1 << 18
"""Samples that are written out together."""
FEW_TIMES = 16
"""Times in a list up to which they are sought one by one."""
MOST = 1 << 24
"""Samples up to which bits are counted: four days of sound."""


@record(frozen=True, slots=True)
class Rates:
    """What a track has a second.

    Attributes:
        frame_rate: pictures a second on average, exact; None for other tracks.
        bit_rate: bits a second on average; None where the index does not know the samples' sizes.
        peak_bit_rate: most bits in any second of decode time that begins with a sample.
    """

    frame_rate: Fraction | None = None
    bit_rate: float | None = None
    peak_bit_rate: float | None = None


def rates_of(track: Track, most: int = MOST) -> Rates:
    """The rates of a track; what the index cannot tell is None.

    Args:
        most: samples up to which bits are counted; of more, bit rates are None.
    """
    scale, table = track.info.timescale, track.fragments
    counts = table.sample_count
    if not scale or not len(table) or (counts == NULL).any() or (table.duration == NULL).any():
        return Rates()
    total, ticks = int(counts.sum()), sum(table.duration.tolist())
    if total < 1 or ticks < 1:
        return Rates()
    frames = Fraction(total * scale, ticks) if track.info.kind == "video" else None
    if total > most or not track.has_samples:
        return Rates(frames)
    try:
        sizes, times = _columns(track, counts)
    except (InexactIndex, LimitExceeded):
        return Rates(frames)
    average = int(sizes.sum()) * 8 * scale / ticks
    if (times[1:] < times[:-1]).any():
        order = np.argsort(times, kind="stable")
        sizes, times = sizes[order], times[order]
    before = np.concatenate([[0], np.cumsum(sizes)])
    ends = np.searchsorted(times, times + scale, side="left")
    peak = float((before[ends] - before[:-1]).max()) * 8
    # Less than a second of media has no fuller second than itself.
    return Rates(frames, average, max(peak, average) if ticks >= scale else average)


def _columns(track: Track, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sizes and decode times of all samples, written out a part at a time."""
    turns = np.cumsum(counts) // AT_ONCE
    edges = [0, *(np.flatnonzero(np.diff(turns)) + 1).tolist(), len(counts)]
    parts = []
    for start, stop in pairwise(edges):
        samples = track.samples_of(start, stop)
        parts.append((samples.size.astype(np.int64), samples.dts.copy()))
    sizes, times = (np.concatenate(column) for column in zip(*parts, strict=True))
    return sizes, times


def _segments(track: Track) -> tuple[Segment, ...]:
    *before, last = track.info.segments(track.movie_timescale) or (None,)
    if last is None:
        return ()
    if last.stop is not None and last.rate and track.extent.is_hybrid:
        last = replace(last, stop=None)
    # Of an edit that begins inside a picture, the shift says where the next picture is.
    late = track.info.shift(track.movie_timescale) - track.shift
    if late and not before:
        stop = None if last.stop is None else last.stop - late / track.timescale
        last = replace(last, stop=stop, media_time=last.media_time + round(late))
    return (*before, last)


SampleLoader = Callable[[int, int], SampleTable]
"""Rows start to stop of the fragment table → their samples."""


_PLAIN = ("info", "movie_timescale", "shift", "period", "exact")


class TrackTables(NamedTuple):
    """The tables of one track, as `Track` has them."""

    fragments: FragmentTable
    sync_samples: SyncTable
    groups: tuple[SampleGroup, ...] = ()
    samples: SampleTable | None = None


class Track:
    """One track of one period: its tables, and seeking in it.

    Attributes:
        info: what the moov says of it (`TrackInfo`).
        id: its track_ID.
        kind: video, audio, text, metadata, timecode, hint or other.
        timescale: ticks a second; 0: unknown.
        codec: RFC 6381 codec string; None: unknown.
        period: number of the period it belongs to, from 0.
        fragments: `FragmentTable`, one row a fragment, in file order.
        sync_samples: `SyncTable`, the sync samples in presentation order.
        groups: `rap ` and `roll` sample groups, separate from `sync_samples`.
        shift: ticks to add to a composition time to get the presentation time.
        movie_timescale: ticks a second of the durations in `info.edits`; 0: unknown.
        exact: whether every sample is known.
        home: where the media are, as the index that holds the track knows it.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> track = fragdex.index(movie(fragments=3, samples=5, fps=25)).track(1)
    >>> track.kind, track.sample_count, track.seek(0.5).time.seconds
    ('video', 15, 0.4)
    """

    __slots__ = (
        "_deferred",
        "_derived",
        "_extent",
        "_fetched",
        "_load",
        "_presented",
        "_samples",
        "_samples_checked",
        "_seeker",
        "codec",
        "exact",
        "fragments",
        "groups",
        "home",
        "id",
        "info",
        "kind",
        "movie_timescale",
        "period",
        "shift",
        "sync_samples",
        "timescale",
    )

    def __init__(
        self,
        info: TrackInfo,
        fragments: FragmentTable,
        sync_samples: SyncTable,
        *,
        shift: Fraction = Fraction(0),
        movie_timescale: int = 0,
        period: int = 0,
        exact: bool = True,
        groups: tuple[SampleGroup, ...] = (),
        load_samples: SampleLoader | None = None,
        samples: SampleTable | None = None,
    ) -> None:
        self._take(info)
        self.fragments, self.sync_samples = fragments, sync_samples
        self.shift, self.period, self.exact, self.groups = shift, period, exact, groups
        self.movie_timescale = movie_timescale
        self._load, self._samples = load_samples, samples

    @classmethod
    def deferred(
        cls,
        info: TrackInfo,
        tables: SavedTables,
        *,
        shift: Fraction,
        period: int,
        exact: bool,
        movie_timescale: int = 0,
    ) -> Track:
        """A track whose tables are loaded on first use.

        Args:
            info, shift, period, exact, movie_timescale: as the attributes.
            tables: called until it returns, and not again; its error (`DamagedIndex`) is raised by
                any use of a table. Two threads at the same moment may both call it.

        `seek` reads tables that are not checked as a whole, and checks the rows that it uses.
        """
        track = cls.__new__(cls)
        track._take(info)
        track.shift, track.period, track.exact = shift, period, exact
        track.movie_timescale = movie_timescale
        track._load, track._deferred = None, tables
        return track

    def _take(self, info: TrackInfo) -> None:
        """Begin with what the moov says, and nothing that is made later."""
        self._fetched: SampleTable | None = None
        self.home: Home | None = None
        self._seeker: Seeker | None = None
        self._extent: Extent | None = None
        self._presented: tuple[Time | None, Time | None] | None = None
        self._deferred: SavedTables | None = None
        self._derived: dict[Any, Any] = {}
        self._samples_checked = False
        self.info = info
        self.id, self.kind, self.timescale, self.codec = (
            info.id, info.kind, info.timescale, info.codec,
        )  # fmt: skip

    if not TYPE_CHECKING:  # to mypy, it would make every name an attribute

        def __getattr__(self, name: str) -> Any:
            """Called for an empty slot (the tables of a deferred track), and for unknown names."""
            if name not in type(self).__slots__:
                known = not name.startswith("_") and hasattr(TrackInfo, name)
                advice = f"; it is track.info.{name}" if known else ""
                raise AttributeError(f"a track has no attribute {name!r}{advice}")
            tables = (
                self._deferred
                if name in ("fragments", "sync_samples", "groups", "_samples")
                else None
            )
            if tables is not None:
                self.fragments, self.sync_samples, self.groups, self._samples = tables.checked()
            return object.__getattribute__(self, name)

    def __getstate__(self) -> dict[str, Any]:
        """For copies and other processes: what a track is made of, nothing that is made of it.

        A saved index sends its columns as they lie in the file, unread, so that one that is damaged
        is so elsewhere. Samples that can be made again are not sent.
        """
        if self._deferred is not None:
            names = [*_PLAIN, "_deferred"]
        else:
            names = [*_PLAIN, "fragments", "sync_samples", "groups", "_load"]
            if self._load is None:
                names.append("_samples")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._take(state["info"])
        self._load = None
        if "_deferred" not in state:
            self._samples = None
        for name, value in state.items():
            setattr(self, name, value)

    def __eq__(self, other: object) -> bool:
        """Equal in all attributes; whether samples are at hand is not compared."""
        if not isinstance(other, Track):
            return NotImplemented
        if self is other:
            return True
        names = (*_PLAIN, "fragments", "sync_samples", "groups")
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __hash__(self) -> int:
        return hash((self.info, self.shift, self.period, self.exact))

    def is_encrypted(self, start: int = 0, stop: int | None = None) -> bool:
        """Whether one of samples `start` to `stop` (exclusive; None: to the last) is encrypted.

        Where only some descriptions are, an index that does not know which ones its samples use
        says so of all.
        """
        encryption = self.info.encryption
        if encryption is None or not encryption.descriptions:
            return encryption is not None
        runs = [one for one in self.groups if one.grouping_type == DESCRIPTION]
        return not runs or any(
            run.value in encryption.descriptions
            and run.sample_start + run.sample_count > start
            and (stop is None or run.sample_start < stop)
            for run in runs
        )

    @property
    def has_clear_samples(self) -> bool:
        """Whether a sample is not encrypted, as far as the index knows."""
        encryption = self.info.encryption
        return encryption is None or any(
            one.grouping_type == DESCRIPTION and one.value not in encryption.descriptions
            for one in self.groups
            if encryption.descriptions
        )

    @property
    def sample_count(self) -> int | None:
        """Samples in the track, or None where the index has only fragments."""
        return self.extent.samples

    @property
    def extent(self) -> Extent:
        """What all fragments come to: where they begin and end."""
        fragments = self.fragments
        if self._extent is None:
            self._extent = Extent(fragments)
        return self._extent

    @property
    def has_samples(self) -> bool:
        """Whether `samples` is available without reading the media again."""
        return self._samples is not None or self._load is not None

    @property
    def samples_ready(self) -> bool:
        """Whether `samples` is in memory or in the saved index, and need not be read again."""
        return self._samples is not None

    @property
    def samples(self) -> SampleTable:
        """Every sample, in decode order; made at the first call and kept.

        A saved index without samples reads them from its media, which were given (`media=`,
        `Index.with_media`) or are where it says.

        Raises:
            InexactIndex: this index holds fragments only, and its media cannot be read.
            DamagedIndex: a saved index has numbers here that no file has.
            LimitExceeded: more samples are claimed than any bytes of the file stand for.
        """
        if self._samples is None and self._load is None:
            if self._fetched is None:
                self._fetched = self.samples_of(0, len(self.fragments))
            return self._fetched
        if self._samples is None:
            self._samples = self.samples_of(0, len(self.fragments))
        elif self._deferred is not None and not self._samples_checked:
            self._deferred.check_samples(self._samples)
            self._samples_checked = True
        return self._samples

    def samples_of(self, start: int, stop: int) -> SampleTable:
        """The samples of rows `start` (inclusive) to `stop` (exclusive) of the fragment table.

        Raises:
            InexactIndex: this index holds fragments only.
            DamagedIndex: a saved index has numbers here that no file has.
            LimitExceeded: more samples are claimed than any bytes of the file stand for.
        """
        if self._samples is not None:
            samples = self._samples.rows(self._numbers(start, stop))
            if self._deferred is not None and not self._samples_checked:
                self._deferred.check_samples(samples)
            return samples
        if self._load is not None:
            return self._load(start, stop)
        if self._fetched is not None:
            return self._fetched.rows(self._numbers(start, stop))
        if not self.exact:
            raise InexactIndex(
                f"the samples of track {self.id} are not in this index",
                advice="build it with exact=True, or save it with samples=True",
            )
        again: SampleTable = offered("samples")(self, start, stop)
        return again

    def _numbers(self, start: int, stop: int) -> slice:
        """Numbers of the samples of rows of the fragment table."""
        rows = self.fragments.rows(slice(start, stop))
        if not len(rows):
            return slice(0, 0)
        last = int(rows.sample_start[-1]) + int(rows.sample_count[-1])
        return slice(int(rows.sample_start[0]), last)

    def derived(self, make: Callable[[Track], T]) -> T:
        """What a function makes of the track, made at the first call and kept.

        It stays here: copies and other processes make it again.
        """
        if make not in self._derived:
            self._derived[make] = make(self)
        value: T = self._derived[make]
        return value

    @property
    def rates(self) -> Rates:
        """Pictures and bits a second, computed at each call."""
        return rates_of(self)

    def presentation(self, cts: int) -> Time:
        """Presentation time of a composition time in ticks."""
        return presentation(cts, self.shift, self.timescale)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The stretches of the presentation that the edit list fills; empty without one.

        The moov of a hybrid file was written when the fragments were not there yet: they follow the
        last edit, however long it says that it is.
        """
        return self.derived(_segments)

    @property
    def start(self) -> Time | None:
        """Where the presentation of the track begins; None where it is unknown.

        The least presentation time, without what the edit list hides.
        """
        return self._bounds()[0]

    @property
    def stop(self) -> Time | None:
        """Where it ends (exclusive); None if unknown.

        The greatest presentation time plus duration, or the end of the edit list.
        """
        return self._bounds()[1]

    @property
    def duration(self) -> Time | None:
        """Time from `start` to `stop`; None if either is unknown."""
        start, stop = self._bounds()
        if start is None or stop is None:
            return None
        return self._time((stop.fraction - start.fraction) * self.timescale)

    def _bounds(self) -> tuple[Time | None, Time | None]:
        """`start` and `stop`, worked out once."""
        if self._presented is None:
            first, last = self.extent.start, self.extent.stop
            if not self.timescale:
                first = last = None
            segments = self.segments
            if segments:
                begin = segments[0].start * self.timescale
                start = None if first is None else self._time(max(first + self.shift, begin))
                end = None
                if last is not None:
                    ends = [self._end_of(segment, last) for segment in segments]
                    end = self._time(max([*ends, begin]))
            else:
                start = None if first is None else self.presentation(first)
                end = None if last is None else self.presentation(last)
            self._presented = start, end
        return self._presented

    def _end_of(self, segment: Segment, last: int) -> Fraction:
        """Ticks of the presentation at which a segment ends, where the media end at `last`."""
        start = segment.start * self.timescale
        media = start + last - segment.media_time
        if segment.stop is None:
            return media
        stop = segment.stop * self.timescale
        return min(media, stop) if segment.rate else stop

    def _time(self, ticks: Fraction) -> Time:
        return Time(ticks.numerator if ticks.denominator == 1 else ticks, self.timescale)

    def seek(
        self,
        time: TimeLike,
        *,
        verified: bool = False,
        source: SourceLike | None = None,
        look_back: int | None = None,
    ) -> Hit:
        """The last sync sample with a presentation time at or before `time`.

        Args:
            time: presentation time, taken as the exact number it is: seconds (int, float,
                Fraction, Decimal, numpy scalar or `Time`), a timedelta, or a text (`90`, `90.5s`,
                `1:30`, `1:02:03.5`).
            verified: check the first bytes of the sample, and go back to one where a decoder can
                start, whatever the flags of the file say. Without it no media is read.
            source: with `verified`: the media, in any form that `fragdex.open_source` takes, or an
                open `Source` with its budget; None: the file or URL that the index was made from.
            look_back: with `verified`: samples marked sync that are checked; None: 4,096.

        Before the first sync sample it gives the first, at or after the end the last, both
        marked `clamped`. With `verified`, so is the first true one where none lies before `time`.

        Raises:
            ValueError: the time is NaN, or a string that is not a time.
            TypeError: it is not a time at all.
            NoSyncSample: there is no sync sample in this track; with `verified`, none among those
                that were checked.
            InexactIndex: the timescale is unknown, so that seconds mean nothing; or, with
                `verified`, the index knows no samples.
            DamagedIndex: the tables of a saved index contradict each other.
            UnverifiedSync: with `verified`: the samples are encrypted where it matters, or of an
                unknown codec.
            SourceError: with `verified`: the media is missing, has changed, or would exceed a
                budget.

        What starts a decoder: AVC: an IDR picture, or a recovery point SEI message with
        recovery_frame_cnt 0 (ISO/IEC 14496-10, D.2.8); HEVC and VVC: an IRAP picture; AV1: a
        sequence header and a key frame that is shown; VP8 and VP9: a key frame; MPEG-4 part 2,
        MPEG-2 and H.263: an intra picture. Every sample of other sound and of pictures that stand
        by themselves (ProRes, JPEG and so on) is one, and none is looked at.
        """
        seeker = self._seeker or self._ready()
        target = floor_ticks(time, self.info.timescale, self.shift)
        if verified:
            with self._verifier(source, look_back) as verifier:
                hit = (verifier or seeker).find(target)
        else:
            hit = seeker.find(target)
        row, sample, offset, size, cts, dts, clamped = hit
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

    def seek_many(
        self,
        times: npt.ArrayLike | Iterable[TimeLike],
        *,
        verified: bool = False,
        source: SourceLike | None = None,
        look_back: int | None = None,
    ) -> Hits:
        """`seek` for an array of float seconds, about a hundred times faster per time.

        Args:
            times: an array of numbers, or any times that `seek` takes, converted one by one; more
                than one dimension is flattened.
            verified, source, look_back: as in `seek`; each sample is checked once, however many
                times lead to it.

        Returns: `Hits`: columns with an element for each time, in their order.

        Raises: as `seek`.
        """
        # Whole columns are read: unlike `seek`, this needs all of them to be checked.
        _ = self.fragments
        seeker = self._seeker or self._ready()
        of: dict[str, Any] = {
            "track": self.info.id,
            "shift": self.shift,
            "timescale": self.info.timescale,
        }
        if not verified and isinstance(times, list) and 0 < len(times) <= FEW_TIMES:
            # For so few, numpy's calls cost more than the work.
            few = [floor_ticks(time, self.info.timescale, self.shift) for time in times]
            return hits_of(map(seeker.find, few), **of)
        targets = ticks_of_many(times, self.info.timescale, self.shift)
        if verified:
            with self._verifier(source, look_back) as verifier:
                hits = (verifier or seeker).find_many(targets)
        else:
            hits = seeker.find_many(targets)
        return replace(hits, **of)

    def _verifier(
        self, source: SourceLike | None, look_back: int | None
    ) -> AbstractContextManager[Finder | None]:
        seeker = self._seeker or self._ready()
        verifier: AbstractContextManager[Finder | None]
        verifier = offered("verifier")(self, seeker, source, look_back)
        return verifier

    def _ready(self) -> Seeker:
        if not self.info.timescale:
            raise InexactIndex(
                f"the timescale of track {self.id} is unknown, so seconds mean nothing",
                advice="give the initialization segment with init=",
            )
        try:
            # Not by name, which would have all of the tables checked.
            fragments = object.__getattribute__(self, "fragments")
            sync = object.__getattribute__(self, "sync_samples")
        except AttributeError:
            assert self._deferred is not None
            fragments, sync = self._deferred.unchecked()
        self._seeker = Seeker(fragments, sync)
        return self._seeker

    def __repr__(self) -> str:
        from fragdex.seeking import show

        return show.track_line(self)


def presented(tracks: Iterable[Track], kind: str) -> list[Track]:
    """The tracks of a kind that are presented by themselves, those first that play by default.

    Those that are left (`TrackInfo.auxiliary`: alpha, depth, thumbnails, chapters, disabled) stand
    for them only where a file has no other.
    """
    of_kind = [track for track in tracks if track.kind == kind]
    plain = [track for track in of_kind if track.info.auxiliary is None] or of_kind
    return sorted(plain, key=lambda track: not track.info.enabled)


def presented_first(tracks: Iterable[Track], kind: str) -> Track | None:
    """The track of a kind that is played where none is named; None: there is none."""
    return next(iter(presented(tracks, kind)), None)
