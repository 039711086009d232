"""The files of a timeline as one title: a view of them all, itself read like a file.

Each file is a fragmented view of its tracks; these stand one behind the other in another view, and
of that one the packages, clips and pictures are made. Nothing of it is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import fragdex
from fragdex import ByteRange, FragmentIndex, Source
from fragdex.errors import TrackNotFound
from fragdex.sandbox.folders import OwnFolder
from fragdex.seeking.model import SourceInfo
from fragdex.service.indexing.apart import in_turn, run_in_child
from fragdex.service.isobmff.single_flight import SingleFlightCache
from fragdex.service.records.blobs import Blob
from fragdex.service.streaming.stored_titles import Medium, Title
from fragdex.service.timelines import child
from fragdex.views.package import Package
from fragdex.views.view import SourceRange, View

__all__ = ["JoinedTitle", "JoinedTitles"]

_SAMPLES_IN_MEMORY: Final = 2_000_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Described:
    """A view and its index."""

    view: View
    index: FragmentIndex


def _described(view: View, path: Path) -> _Described:
    found = fragdex.open_index(path)  # mapped: it stays when the folder goes
    known = SourceInfo("", view.size, etag=view.etag)
    return _Described(view, FragmentIndex(known, found.how, found.periods))


class JoinedTitle:
    """Titles one behind the other.

    Args:
        titles: in their order.
        gaps: `keep` or `close`.

    Raises:
        BuildError: they do not go together; the message says why.
        FragdexError: as `run_apart`.
    """

    def __init__(self, titles: Sequence[Title], gaps: str) -> None:
        self._titles = titles
        self.key = gaps, tuple(title.media for title in titles)
        self._views = [title.fragmented() for title in titles]
        sizes = [view.size for view in self._views]
        starts: Literal["source"] | None = "source" if gaps == "keep" else None
        with OwnFolder() as folder:
            with in_turn(titles[0].tenant_id):
                made = run_in_child(
                    self._one_behind_the_other, sum(sizes), child.indexes,
                    taken=folder, sizes=sizes, starts=starts,
                )  # fmt: skip
            *paths, last = (folder / name for name in made["files"])
            members = [_described(*one) for one in zip(self._views, paths, strict=True)]
            with self._opened_members() as sources:
                given = [one.index for one in members]
                view = fragdex.view(given, "timeline", source=sources, starts=starts)
            self._whole = _described(view, last)

    @contextmanager
    def _opened_members(self) -> Iterator[list[Source]]:
        with ExitStack() as stack:
            yield [
                view.as_source(source=stack.enter_context(title.sources_of(view)))
                for title, view in zip(self._titles, self._views, strict=True)
            ]

    @contextmanager
    def _one_behind_the_other(self) -> Iterator[Source]:
        known = [SourceInfo("", view.size, etag=view.etag) for view in self._views]
        sizes = [view.size for view in self._views]

        def make(number: int) -> list[SourceRange]:
            return [SourceRange(number, ByteRange(0, sizes[number]))]

        with self._opened_members() as members:
            yield View("video/mp4", known, ["members"], sizes, make).as_source(source=members)

    @contextmanager
    def _opened(self) -> Iterator[Source]:
        with self._opened_members() as members:
            yield self._whole.view.as_source(source=members)

    def _made(self, make: Callable[[FragmentIndex, Source], T]) -> T:
        with self._opened() as source:
            return make(self._whole.index, source)

    @cached_property
    def package(self) -> Package:
        """All of it in HLS and DASH; raises as `fragdex.package`."""
        return self._made(lambda index, source: fragdex.package(index, source=source))

    def fragmented(self) -> View:
        """All of it as one file."""
        return self._whole.view

    def clip(
        self,
        start: Fraction,
        stop: Fraction | float,
        *,
        tracks: Sequence[int] | None = None,
        exact: bool = True,
    ) -> View:
        """From `start` to `stop` (seconds, exclusive), as one file; raises as `fragdex.view`."""
        wanted: dict[str, Any] = {"start": start, "stop": stop, "tracks": tracks, "exact": exact}
        return self._made(
            lambda index, source: fragdex.view(index, "clip", source=source, **wanted)
        )

    @contextmanager
    def sources_of(self, view: View) -> Iterator[list[Any]]:
        """The sources of a view of this title, open."""
        if view is self._whole.view:
            with self._opened_members() as members:
                yield list(members)
        else:
            with self._opened() as source:
                yield [source] * len(view.sources)

    def medium(self, kind: str) -> Medium:
        """The whole, as what pictures and waveforms are made from; raises TrackNotFound."""
        tracks = [track for track in self._whole.index.tracks if track.kind == kind]
        if not tracks:
            raise TrackNotFound(f"the timeline has no {kind}")
        return Medium(
            self._titles[0].media[0], tracks[0], self._opened, self._whole.view.size,
            self._saved_index, self._whole.view.etag.strip('"'),
        )  # fmt: skip

    @contextmanager
    def _saved_index(self) -> Iterator[Any]:
        with OwnFolder() as folder:
            self._whole.index.save(folder / "index.fidx", samples=True)
            with (folder / "index.fidx").open("rb") as file:
                yield file

    @property
    def samples(self) -> int:
        """How many samples it has: what it costs in memory."""
        return sum(track.sample_count or 0 for track in self._whole.index.tracks)


class JoinedTitles(SingleFlightCache[JoinedTitle]):
    """The timelines that a process keeps, each made once."""

    def __init__(self) -> None:
        super().__init__("the timeline")

    def title(
        self,
        media: tuple[tuple[Blob, ...], ...],
        gaps: str,
        titles: Callable[[], Sequence[Title]],
    ) -> JoinedTitle:
        """The title of some files; `titles` gives those of each.

        Raises:
            FragdexError: as `JoinedTitle` and `SingleFlight.do`.
        """

        def make() -> JoinedTitle:
            return JoinedTitle(titles(), gaps)

        return self.get_once(
            (gaps, media), _SAMPLES_IN_MEMORY, make, weight=lambda one: 2 * one.samples
        )
