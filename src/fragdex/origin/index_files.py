"""Indexes that are kept as files: beside the films, or in a folder of their own."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import fragdex
from fragdex.boxes.limits import MAX_MADE_SAMPLES
from fragdex.errors import DamagedIndex, FormatError, SourceChanged
from fragdex.seeking.model import Index
from fragdex.sources import Source

SUFFIX = ".fidx"


class IndexFiles:
    """Where the indexes of films are.

    Args:
        folder: that indexes are written to; None: they are not written.
        beside: whether they are written beside local films, as `film.mp4.fidx`. Those that are
            there are read in any case.

    Attributes:
        folder, beside: as given.
    """

    def __init__(self, folder: Path | None = None, *, beside: bool = False) -> None:
        self.folder, self.beside = folder, beside

    def index(
        self,
        place: str,
        source: Source,
        known: Index | None = None,
        *,
        growing: bool = False,
    ) -> Index:
        """The index of a film: one that was kept, if it is of these very bytes, or a new one.

        Args:
            place: path or URL of the film.
            source: the film.
            known: the index of its beginning.
            growing: whether it may grow: its index is not written then.

        Raises: as `fragdex.index`.
        """
        for path in self._paths(place, source.remote):
            kept = _of(path, place, source)
            if kept is not None:
                return kept
        index = None if known is None else known.extend(source)
        if index is None or index.file.mtime_ns != source.mtime_ns:
            index = fragdex.index(source, exact=True)
        written = None if growing else self._written(place, source.remote)
        samples = sum(track.sample_count or 0 for track in index.tracks)
        # of raw sound there may be billions, and they are found anew in a moment
        if written is not None and samples <= MAX_MADE_SAMPLES:
            with suppress(OSError):  # a full or read-only disk: the film plays all the same
                written.parent.mkdir(parents=True, exist_ok=True)
                index.save(written, samples=True)
        return index

    def _paths(self, place: str, remote: bool) -> list[Path]:
        beside = [] if remote else [Path(place + SUFFIX)]
        written = self._written(place, remote)
        return list(dict.fromkeys([*beside, *([] if written is None else [written])]))

    def _written(self, place: str, remote: bool) -> Path | None:
        if self.folder is not None:
            name = hashlib.md5(os.fsencode(place), usedforsecurity=False).hexdigest()
            return self.folder / f"{name}{SUFFIX}"
        return Path(place + SUFFIX) if self.beside and not remote else None


def _of(path: Path, place: str, source: Source) -> Index | None:
    """The index in a file, if it is of this film and knows its samples."""
    if not path.is_file():
        return None
    try:
        index = fragdex.open_index(path)
        if source.remote:
            source.read_up_to(fragdex.ByteRange(0, 16))  # its size and tag come with an answer
        index.file.refuse_other(place, size=source.size, etag=source.etag, mtime_ns=source.mtime_ns)
    except (DamagedIndex, FormatError, SourceChanged, OSError):
        return None
    return index if all(track.has_samples for track in index.tracks) else None
