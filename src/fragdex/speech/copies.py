"""What a copy with captions is put together of, found out in a process of its own."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from fragdex import Source, index
from fragdex.formats.captions_track import with_captions

PLACES: Final = "places"
MADE: Final = "made"
_ROW: Final = np.dtype(("<i8", 2))
_ROWS: Final = 1 << 12


@dataclass(frozen=True, slots=True)
class Pieces:
    """The pieces of a copy, in two files.

    Attributes:
        places: start (inclusive) and stop (exclusive) of each, two int64: in the file that is
            copied, or below 0 for as many bytes that were made.
        made: those, one behind the other.
    """

    places: Path
    made: Path

    def __iter__(self) -> Iterator[tuple[int, int]]:
        with self.places.open("rb") as file:
            while len(rows := np.fromfile(file, _ROW, _ROWS)):
                yield from map(tuple, rows.tolist())

    def write(self, pieces: list[Any]) -> None:
        """Write what `with_captions` gave."""
        with self.places.open("wb") as places, self.made.open("wb") as made:
            for piece in pieces:
                if isinstance(piece, bytes):
                    made.write(piece)
                    row = -len(piece), 0
                else:
                    row = piece.start, piece.stop
                places.write(struct.pack("<qq", *row))


def pieces_of_copy(
    source: Source, cues: list[tuple[int, int, str]], language: str | None
) -> dict[str, Any]:
    """Find out what the copy of a file consists of, into the folder of the process."""
    pieces = with_captions(index(source, exact=True), source.read, cues, language=language)
    Pieces(Path(PLACES), Path(MADE)).write(pieces)
    return {}
