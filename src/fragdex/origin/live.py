"""Local files that grow, while they are served: each append costs what has come."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from fragdex.errors import BuildError, NoSyncSample, SourceChanged
from fragdex.packaging.growing import GrowingTitle, Irregular
from fragdex.packaging.package import Package
from fragdex.seeking.model import Index
from fragdex.seeking.times import TimeLike
from fragdex.sources import Source, open_source


class LiveFilm:
    """Files that grow, as one title; each append costs what has come.

    Args:
        places: of the files.
        indexes: of each, when it was opened.
        options: of `open_source`.

    Attributes:
        title: their package, and what it is continued from.
    """

    title: GrowingTitle

    def __init__(
        self, places: list[str], indexes: Sequence[Index], options: dict[str, Any]
    ) -> None:
        self._places, self._indexes, self._options = places, list(indexes), options
        self._lock, self._growing = threading.Lock(), threading.Lock()

    @classmethod
    def of(
        cls,
        places: list[str],
        indexes: Sequence[Index],
        sources: list[Source],
        length: TimeLike,
        began: datetime | None,
        options: dict[str, Any],
    ) -> LiveFilm | None:
        """Files that grow; None: no segment is complete yet.

        Raises:
            Irregular: they have to be packaged as a whole.
            FragdexError: as `fragdex.package`.
        """
        live = cls(places, indexes, options)
        try:
            live.title = GrowingTitle(
                indexes, sources, live.whole, segment_duration=length, began=began
            )
        except (BuildError, NoSyncSample):
            return None
        return live

    def grow(self, sources: list[Source]) -> tuple[tuple[Index, ...], Package] | None:
        """The ends of files and the package with what has come; None: it cannot be continued.

        Args:
            sources: the files; they are looked at again.

        Raises: as `fragdex.index`.
        """
        with self._growing:  # what came later is never taken away again
            for source in sources:
                source.refresh()
            try:
                package = self.title.grow(sources, self.whole)
            except Irregular:
                return None
            return self.windows(sources), package

    def windows(self, sources: list[Source]) -> tuple[Index, ...]:
        """The indexes of the ends of files, as `ServedFilm` has them."""
        every = zip(self.title.windows, sources, self._indexes, strict=True)
        return tuple(
            growing_index(window, source, known.file.revision) for window, source, known in every
        )

    def whole(self, number: int) -> Index:
        """The index of a whole file, with what has come.

        Raises: as `fragdex.index`.
        """
        with self._lock, open_source(self._places[number], **self._options) as source:
            index = self._indexes[number]
            if source.identity != index.file.grows_as:
                raise SourceChanged(
                    f"there is another file at {source.name} now", advice="open and index it again"
                )
            if source.size != index.file.size:
                index = self._indexes[number] = growing_index(
                    index.extend(source), source, index.file.revision
                )
        return index


def growing_index(index: Index, source: Source, revision: int) -> Index:
    """The index of a file to which more is written while it is served.

    Args:
        revision: how often the file was found cut or written again.
    """
    return Index(
        replace(index.file, grows_as=source.identity, revision=revision),
        index.how,
        index.periods,
        findings=index.findings,
        complete=index.complete,
        resume_offset=index.resume_offset,
        digests=index.digests,
    )
