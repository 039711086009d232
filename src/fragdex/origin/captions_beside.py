"""Caption files beside a film: `film.fr.vtt`, `film.srt` are its subtitles."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fragdex.errors import FormatError, SourceError
from fragdex.views.subtitles import Captions, read_captions

__all__ = ["CaptionsBeside", "files_beside"]

_SUFFIXES: Final = (".vtt", ".srt")
_MOST: Final = 64
"""Caption files of one film."""


def files_beside(place: str) -> tuple[tuple[str, int, int], ...]:
    """Path, size and time of the last change of each caption file of a local film, in order."""
    film = Path(place)
    found = []
    with os.scandir(film.parent) as entries:
        for entry in entries:
            name = entry.name
            if name.startswith(f"{film.stem}.") and name.lower().endswith(_SUFFIXES):
                try:
                    now = entry.stat()
                except OSError:  # gone meanwhile
                    continue
                found.append((entry.path, now.st_size, now.st_mtime_ns))
    return tuple(sorted(found)[:_MOST])


@dataclass(slots=True)
class CaptionsBeside:
    """The caption files of a local film, as they were when it was opened.

    Args:
        place: path of the film.
    """

    place: str
    changed: int = field(init=False)
    files: tuple[tuple[str, int, int], ...] = field(init=False)

    def __post_init__(self) -> None:
        self.changed = self._folder()
        self.files = files_beside(self.place)

    def read(self) -> list[Captions]:
        """Those that can be read; the film plays without the others."""
        found = []
        for path, _, _ in self.files:
            with suppress(FormatError, SourceError):
                found.append(read_captions(path))
        return found

    def is_current(self) -> bool:
        """Whether the same files are there, unchanged.

        Raises:
            OSError: the folder is gone.
        """
        changed = self._folder()
        if changed != self.changed:  # a file was added or removed, perhaps another film's
            if files_beside(self.place) != self.files:
                return False
            self.changed = changed
        for path, size, mtime_ns in self.files:
            now = os.stat(path)
            if (now.st_size, now.st_mtime_ns) != (size, mtime_ns):
                return False
        return True

    def _folder(self) -> int:
        return os.stat(os.path.dirname(self.place)).st_mtime_ns
