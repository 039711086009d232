"""Where the media data of a film without a moov is: what the boxes at the top level still say."""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

from fragdex.box_header import BoxHeader, read_header
from fragdex.byterange import ByteRange
from fragdex.repairing.syntax import Window
from fragdex.seeking.origin import FileInfo
from fragdex.sources import Source
from fragdex.views.view import Part, SourceRange, View, size_of

TOP_LEVEL: Final = frozenset(
    b"ftyp styp moov moof mdat free skip wide udta meta uuid sidx ssix emsg prft mfra pnot pdin"
    b" imda".split()
)
"""Types that are believed where nothing else says that boxes are here."""
MOOV: Final = b"moov"
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
    if not any(one.kind == "moov" for one in made) and made and made[-1].cut:
        made[-1:] = _around_moov(source, made[-1])
    return [one for one in made if one.start < one.stop]


def _around_moov(source: Source, last: Stretch) -> list[Stretch]:
    """Media data whose size does not say where it ends, and the moov that stands behind it."""
    window = Window(source, last.stop)
    at = last.start
    while (place := window.find(MOOV, at, last.stop)) is not None:
        head = read_header(window.take(place - 4, 32)) if place - 4 >= last.start else None
        stop = place - 4 + (head.size_in(last.stop - place + 4) if head is not None else 0)
        first = read_header(window.take(place + 4, 32))
        is_moov = first is not None and first.type in (b"mvhd", b"cmov", b"trak", b"iods")
        ends = stop == last.stop or (stop > place and _header(source, stop, last.stop) is not None)
        if is_moov and ends:
            behind = [] if stop == last.stop else [Stretch(stop, last.stop, "boxes")]
            return [
                Stretch(last.start, place - 4, last.kind or "mdat"),
                Stretch(place - 4, stop, "moov"),
                *behind,
            ]
        at = place + 4
    return [last]


def with_right_header(source: Source, size: int, stretches: list[Stretch]) -> View | None:
    """The file with an mdat that ends where its moov begins; None: it does so already.

    Its bytes are where they are in the file, but for those that the header takes.
    """
    for one, following in pairwise(stretches):
        if one.kind == "mdat" and following.kind == "moov":
            start = next(s.start for s in stretches if s.stop == one.start)
            head = read_header(source.read_up_to(ByteRange(start, min(start + 32, size))))
            if head is not None and head.form != "to_end" and start + head.size == one.stop:
                return None
            large = b"\0\0\0\1mdat" + (one.stop - start).to_bytes(8, "big")
            before, behind = ByteRange(0, start), ByteRange(start + 16, size)
            return _view_of(source, size, [SourceRange(0, before), large, SourceRange(0, behind)])
    return None


def _view_of(source: Source, size: int, given: list[Part]) -> View:
    """A file with some of its bytes replaced."""
    parts = [part for part in given if size_of(part)]
    info = FileInfo(source.name, size, None, source.etag, source.mtime_ns)
    sizes = [size_of(part) for part in parts]
    return View("", [info], "header of mdat", sizes, lambda number: parts[number : number + 1])


def _header(source: Source, at: int, size: int) -> BoxHeader | None:
    """The header of a known box; None: there is none."""
    head = read_header(source.read_up_to(ByteRange(at, min(at + 32, size))))
    if head is None or head.type not in TOP_LEVEL:
        return None
    return head if head.type == b"mdat" or head.size_in(size - at) else None
