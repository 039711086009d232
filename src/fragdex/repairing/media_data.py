"""Where the media data of a film without a moov is: what the boxes at the top level still say."""

from __future__ import annotations

from typing import Final, NamedTuple

from fragdex.box_header import BoxHeader, read_header
from fragdex.byterange import ByteRange
from fragdex.sources import Source

TOP_LEVEL: Final = frozenset(
    b"ftyp styp moov moof mdat free skip wide udta meta uuid sidx ssix emsg prft mfra pnot pdin"
    b" imda".split()
)
"""Types that are believed where nothing else says that boxes are here."""
MOST_BOXES: Final = 1 << 20


class Stretch(NamedTuple):
    """Bytes of a file.

    Attributes:
        start, stop: of them (exclusive).
        kind: type of a box, or "mdat" for what is inside one, or "" for bytes that are no box.
        cut: whether what is inside of it may go on behind its end.
    """

    start: int
    stop: int
    kind: str
    cut: bool = False


def stretches_of(source: Source, size: int) -> list[Stretch]:
    """The file in order: boxes, and what may be media data.

    An mdat whose size leads to no box is taken to reach to the next place where boxes follow, or
    to the end of the file: its size was to be written last.
    """
    made: list[Stretch] = []
    at = 0
    while at < size and len(made) < MOST_BOXES:
        head = _header(source, at, size)
        if head is None:
            made.append(Stretch(at, size, "", True))
            break
        stop = at + head.size_in(size - at)
        if head.type == b"mdat":
            begin = min(at + head.length, size)
            cut = head.form == "to_end"
            if head.form == "cut" or head.impossible or stop == at:
                begin, stop = min(at + (16 if head.form == "large" else 8), size), size
                cut = True
            elif stop < size and _header(source, stop, size) is None:
                stop, cut = size, True
            made += [Stretch(at, begin, "header of mdat"), Stretch(begin, stop, "mdat", cut)]
        elif stop == at:
            made.append(Stretch(at, size, "", True))
            break
        else:
            made.append(Stretch(at, stop, head.type.decode("latin-1")))
        at = stop
    return [one for one in made if one.start < one.stop]


def _header(source: Source, at: int, size: int) -> BoxHeader | None:
    """The header of a known box; None: there is none."""
    head = read_header(source.read_up_to(ByteRange(at, min(at + 32, size))))
    if head is None or head.type not in TOP_LEVEL:
        return None
    return head if head.type == b"mdat" or head.size_in(size - at) else None
