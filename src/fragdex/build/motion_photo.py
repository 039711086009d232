"""Motion photos: a film behind a JPEG picture, in the same file."""

from __future__ import annotations

import re

from fragdex.byterange import ByteRange
from fragdex.sources import Source

__all__ = ["film_in_jpeg"]

JPEG = b"\xff\xd8\xff"
"""What a JPEG begins with: start of image, and the next marker."""
MOST_LOOKED = 1 << 26
"""Bytes in which the film is looked for; pictures have a tenth of that."""
PIECE = 1 << 20
FTYP = re.compile(rb"\0\0[\0-\x01]([\x10-\xff])ftyp[ -~]{4}")
"""The beginning of an MP4: a short ftyp, and a brand that can be read."""


def film_in_jpeg(source: Source) -> int | None:
    r"""Where the MP4 behind a JPEG begins; None where the file is no JPEG, or has none.

    Raises: what reading the source raises.

    >>> from fragdex.sources import open_source
    >>> film_in_jpeg(open_source(JPEG + bytes(20) + b"\0\0\0\x10ftypmp42"))
    23
    """
    if source.read_up_to(ByteRange(0, len(JPEG))) != JPEG:
        return None
    at, held = 0, b""
    while at < MOST_LOOKED and (piece := source.read_up_to(ByteRange(at, at + PIECE))):
        held = held[-16:] + piece
        found = FTYP.search(held)
        if found is not None:
            return at + len(piece) - len(held) + found.start()
        at += len(piece)
    return None
