"""The index of a file: what it knows, and the questions it answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from fragdex.byterange import ByteRange
from fragdex.errors import InexactIndex, NoSyncSample, TrackNotFound
from fragdex.fragments.findings import Finding
from fragdex.fragments.pieces import PieceDigests
from fragdex.fragments.track_info import KINDS, Movie, SampleGroup, TrackKind
from fragdex.record import record
from fragdex.seeking.forms import Exporting, offered
from fragdex.seeking.origin import CheckedSource, FileInfo, Home, How
from fragdex.seeking.seek import Hit
from fragdex.seeking.times import TimeLike
from fragdex.seeking.track import SampleLoader, Track, presented_first
from fragdex.sources import Source, SourceLike, open_source

if TYPE_CHECKING:
    from fragdex.seeking.plan import Plan, Span
    from fragdex.seeking.window import Window

__all__ = [
    "FileInfo",
    "How",
    "Index",
    "Period",
    "SampleGroup",
    "SampleLoader",
    "Track",
]


MOST_NAMED = 50
"""Tracks that an error lists; real files have a handful."""


@record(frozen=True, slots=True)
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
    tracks: tuple[Track, ...]

    def track(self, track_id: int) -> Track:
        """The track of this id.

        Raises:
            TrackNotFound: there is none.
        """
        for track in self.tracks:
            if track.id == track_id:
                return track
        raise TrackNotFound(
            f"there is no track {track_id}",
            expected=_named(self.tracks),
            found=track_id,
        )


def _named(tracks: Sequence[Track]) -> str:
    """The track_IDs that there are, as an error names them."""
    if not tracks:
        return "one of none"
    more = f" and {len(tracks) - MOST_NAMED:,} more" if len(tracks) > MOST_NAMED else ""
    return "one of " + ", ".join(str(track.id) for track in tracks[:MOST_NAMED]) + more


def one_period_of(tracks: Sequence[Track]) -> None:
    """Refuse to take the first of several periods for the whole video.

    Raises:
        TrackNotFound: these tracks are of several.
    """
    periods = sorted({track.period for track in tracks})
    if len(periods) > 1:
        raise TrackNotFound(
            f"there is {tracks[0].kind} in {len(periods)} periods",
            advice="take one: index.of_period(0), or --period 0; or all of them, one after the "
            "other: fragdex.join([index.of_period(0), index.of_period(1), …])",
        )


class Index(Exporting):
    """The index of one file.

    Attributes:
        file: which bytes it describes.
        how: how it was made and what that cost.
        periods: one for each moov; nearly always one.
        findings: problems of the file, in file order.
        complete: False where the file is truncated or still growing.
        resume_offset: where `extend` continues: the first byte that is not indexed yet.
        digests: the digest of each piece of the file, or None if they were not requested.

    Two indexes are equal if they say the same of the media.

    An index can always be copied and pickled. Its pickle
    has its tables and the headers that samples are made from, but no media and no path, so it
    works on another machine. One from `open_index` is pickled as the bytes of its file.

    >>> import pickle
    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> index = fragdex.index(movie(fragments=3, samples=5, fps=25))
    >>> len(index.track(1).fragments), index.duration, index.complete
    (3, 0.6, True)
    >>> pickle.loads(pickle.dumps(index)) == index
    True
    """

    __slots__ = (
        "_by_id",
        "complete",
        "digests",
        "file",
        "findings",
        "how",
        "periods",
        "resume_offset",
    )

    def __init__(
        self,
        file: FileInfo,
        how: How,
        periods: Iterable[Period],
        *,
        findings: Iterable[Finding] = (),
        complete: bool = True,
        resume_offset: int = 0,
        digests: PieceDigests | None = None,
        media: SourceLike | None = None,
    ) -> None:
        self.file, self.how = file, how
        self.periods, self.findings = tuple(periods), tuple(findings)
        self.complete, self.resume_offset, self.digests = complete, resume_offset, digests
        for period in self.periods:
            home = Home(
                file,
                period.init,
                {t.id: t.info.defaults for t in period.tracks if t.info.defaults is not None},
                media,
            )
            for track in period.tracks:
                track.home = home
        self._by_id: dict[int, list[Track]] = {}
        for track in self.tracks:
            self._by_id.setdefault(track.id, []).append(track)

    def __eq__(self, other: object) -> bool:
        """Whether both say the same of the media.

        Neither how they were made is compared, nor where the media are, nor whether samples are at
        hand; md5 and size are, where both know them.
        """
        if not isinstance(other, Index):
            return NotImplemented
        if self is other:
            return True
        for mine, theirs in (
            (self.file.size, other.file.size),
            (self.file.md5, other.file.md5),
        ):
            if mine is not None and theirs is not None and mine != theirs:
                return False
        names = ("complete", "resume_offset", "findings", "periods")
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __hash__(self) -> int:
        return hash((self.resume_offset, len(self.periods)))

    def __copy__(self) -> Index:
        return self._copied(self.periods, self._given_media())

    def __reduce__(self) -> tuple[Any, ...]:
        media = self._given_media()
        lasting = media if isinstance(media, (str, PathLike)) else None
        return _made_again, self._parts(self.periods, lasting)

    def _parts(self, periods: Iterable[Period], media: SourceLike | None) -> tuple[Any, ...]:
        """What `_made_again` makes an index of; the last is what a class below this one adds."""
        names = ("findings", "complete", "resume_offset", "digests")
        more = {name: getattr(self, name) for name in names} | {"media": media}
        slots = () if type(self) is Index else type(self).__slots__
        own = {name: getattr(self, name) for name in slots}
        return type(self), (self.file, self.how, tuple(periods)), more, own

    def _given_media(self) -> SourceLike | None:
        return next((t.home.media for t in self.tracks if t.home is not None), None)

    @property
    def tracks(self) -> tuple[Track, ...]:
        """The tracks of all periods, in file order."""
        return tuple(track for period in self.periods for track in period.tracks)

    def track(self, which: int | TrackKind) -> Track:
        """The track of this id, or the first one of this kind.

        Args:
            which: a track_ID, or a kind: video, audio, text, metadata, timecode, hint or other.

        Raises:
            TrackNotFound: there is no such track, or the id is in several periods; then use
                `index.of_period(i).track(id)`.
            ValueError: there is no such kind.
        """
        if isinstance(which, str):
            if which not in KINDS:
                raise ValueError(f"a track is named by its id or its kind, not by {which!r}")
            if (first := presented_first(self.tracks, which)) is not None:
                return first
            kinds = ", ".join(dict.fromkeys(track.kind for track in self.tracks)) or "none"
            raise TrackNotFound(f"there is no track of kind {which}", expected=kinds, found=which)
        tracks = self._by_id.get(which, ())
        if len(tracks) == 1:
            return tracks[0]
        if tracks:
            raise TrackNotFound(
                f"track {which} is in {len(tracks)} periods",
                advice=f"ask index.of_period(0).track({which}), or give --period 0",
            )
        raise TrackNotFound(f"there is no track {which}", expected=_named(self.tracks), found=which)

    @property
    def video(self) -> Track | None:
        """The video track that is presented (`TrackInfo.auxiliary`), or None."""
        return presented_first(self.tracks, "video")

    @property
    def audio(self) -> Track | None:
        """The audio track that is presented, or None."""
        return presented_first(self.tracks, "audio")

    def seek(
        self, time: TimeLike, *, verified: bool = False, source: SourceLike | None = None
    ) -> Hit:
        """Where decoding must start to show a moment: `Track.seek` of the first video track.

        Of a file without video, of the first track that can be seeked in.

        Args: as of that.

        Raises: as that; NoSyncSample: no track can be seeked in; TrackNotFound: tracks of several
        periods can.

        >>> import fragdex
        >>> from fragdex.testing import movie
        >>> index = fragdex.index(movie(fragments=3, samples=5, fps=25))
        >>> index.seek(0.5) == index.video.seek(0.5) == index.track("video").seek(0.5)
        True
        """
        able = self._chosen(None)
        if not able:
            raise NoSyncSample("there is no track with samples to seek in")
        periods = {track.period for track in able}
        if len({self.periods[number].init for number in periods}) < len(periods):
            one_period_of(able)  # its clock restarts: none of them stands for the whole
        track = presented_first(able, "video") or able[0]
        return track.seek(time, verified=verified, source=source)

    def with_media(self, media: SourceLike) -> Index:
        """This index, with its media at another place than it says.

        What a saved index does not hold (samples, for views, packages and exports) is read there.

        Args:
            media: in any form that `fragdex.open_source` takes; opened when it is needed.

        >>> import fragdex
        >>> from fragdex.testing import movie
        >>> data = movie(fragments=3, samples=5)
        >>> saved = fragdex.open_index(fragdex.index(data).export("fidx"))
        >>> len(saved.with_media(data).video.samples)
        15
        """
        return self._copied(self.periods, media)

    def of_period(self, number: int) -> Index:
        """The index of one period alone, as if the file had no other; it becomes number 0.

        Args:
            number: of the period, from 0.

        Raises:
            TrackNotFound: there is no such period.

        >>> import fragdex
        >>> from fragdex.testing import movie
        >>> data = movie(fragments=3)
        >>> index = fragdex.index(data + data)
        >>> len(index.periods), len(index.of_period(1).track(1).fragments)
        (2, 3)
        """
        if not 0 <= number < len(self.periods):
            raise TrackNotFound(
                f"there is no period {number}",
                expected=f"below {len(self.periods)}",
                found=number,
            )
        if len(self.periods) == 1:
            return self
        return self._copied([self.periods[number]], self._given_media())

    def _copied(self, periods: Iterable[Period], media: SourceLike | None) -> Index:
        """Some periods of this index, numbered from 0, and where the media are."""
        copies = []
        for number, period in enumerate(periods):
            tracks = tuple(copy(track) for track in period.tracks)
            for track in tracks:
                track.period = number
            copies.append(replace(period, number=number, tracks=tracks))
        return _made_again(*self._parts(copies, media))

    @property
    def exact(self) -> bool:
        """Whether every sample of every track is known."""
        return all(track.exact for track in self.tracks)

    @property
    def duration(self) -> float | None:
        """Seconds from the first to the last presentation time of all tracks, or None."""
        spans = [(t.start, t.stop) for t in self.tracks]
        known = [(float(a), float(b)) for a, b in spans if a is not None and b is not None]
        if not known:
            return None
        return max(end for _, end in known) - min(start for start, _ in known)

    def span(
        self,
        start: TimeLike,
        stop: TimeLike,
        *,
        tracks: Iterable[int] | None = None,
        max_gap: int = 0,
    ) -> Span:
        """The bytes that play a span of presentation time.

        Args:
            start: a time as for `Track.seek`, inclusive; decoding starts at the sync
                sample at or before it.
            stop: likewise, exclusive; infinity: to the end.
            tracks: track ids; None: all.
            max_gap: ranges at most so many bytes apart are merged.

        Returns: a `Span`: `init` (ranges of the initialization segment), `media` (merged ranges in
        file order), `clamped` (the span is longer than the presentation), `plays` (whether
        these bytes, concatenated, play alone) and `obstacle` (why not, and which view does).

        Raises: as `Track.seek`; ValueError where stop lies before start.
        """
        from fragdex.seeking.plan import span

        chosen = self._chosen(tracks)
        periods = {track.period for track in chosen}
        beside = [track for track in self.tracks if track.period in periods]
        return span(chosen, self._inits(chosen), start, stop, max_gap, beside, file=self.file)

    def plan(self, time: TimeLike, *, tracks: Iterable[int] | None = None) -> Plan:
        """What a seek would read: requests, bytes, samples to decode, and why.

        Raises: as `Track.seek`.
        """
        from fragdex.seeking.plan import plan

        chosen = self._chosen(tracks)
        return plan(chosen, self._inits(chosen), time)

    def window(
        self,
        track: int | TrackKind | Track,
        first: int,
        stop: int,
        *,
        verified: bool = False,
        source: SourceLike | None = None,
    ) -> Window:
        """What any decoder needs for some frames: a small file, a stream or packets of them.

        Args:
            track: a track_ID, a kind, or a track of this index.
            first, stop: numbers of frames, as `fragdex.Frames` counts them; stop is exclusive.
            verified: look at the first bytes of the samples that decoding would begin with, and go
                back to one where a decoder can start, as `Track.seek` does.
            source: with `verified`: the media, as of that.

        Returns: a `Window`, which knows its byte ranges. Unless it is `verified`, nothing is read.

        Raises:
            IndexError: the track has no such frames.
            TrackNotFound: there is no such track, or it has no pictures.
            UndecodableMedia: it is encrypted.
            InexactIndex: the index holds fragments only.
            And with `verified` what `Track.seek` raises.

        >>> import fragdex
        >>> index = fragdex.index("fixtures/open-gop.mp4")
        >>> window = index.window("video", 14, 18)
        >>> [str(part) for part in window.ranges], window.wanted.tolist()
        (['[1117, 1439)'], [2, 3, 4, 5])
        """
        from fragdex.seeking.window import window_of

        return window_of(self._one(track), first, stop, verified=verified, source=source)

    def window_at(
        self,
        track: int | TrackKind | Track,
        start: TimeLike,
        stop: TimeLike,
        *,
        verified: bool = False,
        source: SourceLike | None = None,
    ) -> Window:
        """The same of the frames that are shown at some moment from `start` to `stop` (exclusive).

        Args:
            start, stop: presentation times, as `Track.seek` takes them.
            track, verified, source: as of `window`.

        Raises: as `window`; ValueError: `stop` does not lie after `start`, or a time is NaN.
        """
        from fragdex.seeking.window import window_at

        return window_at(self._one(track), start, stop, verified=verified, source=source)

    def _one(self, track: int | TrackKind | Track) -> Track:
        if isinstance(track, Track):
            return track
        one_period_of([one for one in self.tracks if track in (one.id, one.kind)])
        return self.track(track)

    def _chosen(self, tracks: Iterable[int] | None) -> list[Track]:
        if isinstance(tracks, (int, str)):
            raise TypeError(f"tracks are several track ids: write tracks=[{tracks}]")
        if tracks is not None:
            return [self.track(track_id) for track_id in tracks]
        return [track for track in self.tracks if track.timescale and len(track.sync_samples)]

    def _inits(self, tracks: Iterable[Track]) -> tuple[ByteRange, ...]:
        periods = {track.period for track in tracks}
        return tuple(r for period in self.periods if period.number in periods for r in period.init)

    def save(self, path: str | PathLike[str], *, samples: bool = False) -> None:
        """Write the binary index (docs/index-format.md): atomically, never half a file.

        Args:
            path: the file; an existing one is replaced at the end.
            samples: include the sample tables.
        """
        offered("save")(self, path, samples=samples)

    def checked(self, source: SourceLike | None = None) -> Source:
        """The media as a source whose every read is held to `digests`, for whatever takes media.

        Args:
            source: the media in any form that `fragdex.open_source` takes; None: the file that the
                index was made from.

        Returns: a source that reads whole pieces, of a megabyte at most, and gives no byte of one
            that has changed: it raises SourceChanged instead.

        Raises:
            InexactIndex: the index has no digests.
            SourceError: the media cannot be opened.

        >>> import fragdex
        >>> index = fragdex.index("fixtures/frag-cmaf.mp4", digests=True)
        >>> clip = fragdex.clip(index, start=0.5, stop=1, source=index.checked())
        >>> clip.read(source=index.checked())[4:8]
        b'ftyp'
        """
        if self.digests is None:
            raise InexactIndex(
                "the index has no digests of pieces",
                advice="make it with digests=True (fragdex index --digests)",
            )
        return CheckedSource(
            open_source(self.file.name if source is None else source), self.digests
        )

    def extend(self, source: SourceLike) -> Index:
        """The index of a file that has grown, continued from `resume_offset`.

        Args:
            source: the grown file, in any form that `fragdex.index` takes.

        Raises:
            SourceChanged: it is shorter than what is indexed already.
        """
        grown: Index = offered("extend")(self, source)
        return grown

    def __repr__(self) -> str:
        from fragdex.seeking import show

        return show.index_text(self)

    def _repr_html_(self) -> str:
        from fragdex.seeking import show

        return show.index_html(self)


def _made_again(
    kind: type[Index], parts: tuple[Any, ...], more: Mapping[str, Any], own: Mapping[str, Any]
) -> Index:
    other = kind(*parts, **more)
    for name, value in own.items():
        setattr(other, name, value)
    return other
