"""The index of a file: what it knows, and the questions it answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fragdex.byterange import ByteRange
from fragdex.errors import TrackNotFound
from fragdex.fragments.findings import Finding
from fragdex.fragments.groups import SampleGroup
from fragdex.fragments.tracks import Movie
from fragdex.seeking import plan, registry, show
from fragdex.seeking.origin import How, SourceInfo
from fragdex.seeking.track import SampleLoader, TrackIndex

__all__ = [
    "FragmentIndex",
    "How",
    "Period",
    "SampleGroup",
    "SampleLoader",
    "SourceInfo",
    "TrackIndex",
]


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
