"""Where the media data of a file without a moov is: what the boxes at the top level still say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, pairwise
from typing import Final, NamedTuple

from fragdex.box_header import BoxHeader, read_header
from fragdex.byterange import ByteRange
from fragdex.muxing.view import Part, SourceRange, View, size_of
from fragdex.repairing.syntax import Window
from fragdex.seeking.origin import FileInfo
from fragdex.sources import Source

TOP_LEVEL: Final = frozenset(
    b"ftyp styp moov moof mdat free skip wide udta meta uuid sidx ssix emsg prft mfra pnot pdin"
    b" imda".split()
)
"""Types that are believed where nothing else says that boxes are here."""
MOOV: Final = b"moov"
MVHD: Final = b"mvhd"
IN_MOOV: Final = frozenset(b"mvhd trak mvex udta meta iods free skip".split())
MOST_BOXES: Final = 1 << 20
HEADER_OF_MDAT: Final = "header of mdat"


class Stretch(NamedTuple):
    """Bytes of a file.

    Attributes:
        start, stop: of them (exclusive).
        kind: type of a box, or "mdat" for what is inside one, or "" for bytes that are not a box.
        cut: whether what is inside of it may continue after its end.
    """

    start: int
    stop: int
    kind: str
    cut: bool = False


def stretches_of(source: Source, size: int, at: int = 0) -> list[Stretch]:
    """The file in order, from a place on: boxes, and what may be media data.

    An mdat whose size leads to no box is taken to reach to the next place where boxes follow, or
    to the end of the file: its size was to be written last.
    """
    stretches: list[Stretch] = []
    while at < size and len(stretches) < MOST_BOXES:
        head = _header(source, at, size)
        if head is None:
            stretches.append(Stretch(at, size, "", True))
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
            stretches += [Stretch(at, begin, HEADER_OF_MDAT), Stretch(begin, stop, "mdat", cut)]
        elif stop == at:
            stretches.append(Stretch(at, size, "", True))
            break
        else:
            stretches.append(Stretch(at, stop, head.type.decode("latin-1")))
        at = stop
    return [one for one in stretches if one.start < one.stop]


def may_hide_moov(stretches: Sequence[Stretch]) -> bool:
    """Whether a moov may stand after media data whose size does not say where it ends."""
    has_moov = any(one.kind == "moov" for one in stretches)
    return bool(stretches) and stretches[-1].cut and not has_moov


def with_hidden_moov(source: Source, stretches: Sequence[Stretch]) -> list[Stretch]:
    """The file with the moov after such media data; all of it is searched.

    A moov whose own header was overwritten is known by the boxes inside of it.
    """
    return [*stretches[:-1], *_around_moov(source, stretches[-1])]


def opened_up(source: Source, stretches: Sequence[Stretch]) -> list[Stretch] | None:
    """The file with the boxes that stand in media data; None: there are no fragments.

    A recorder writes fragments, and turns all of them into one mdat when it has written the moov
    of the whole file after them: where that moov is lost, the fragments still describe the samples.
    """
    if any(one.kind == "moof" for one in stretches):
        return None
    for number, one in enumerate(stretches):
        if one.kind == "mdat":
            inside = stretches_of(source, one.stop, one.start)
            if {"moov", "moof"} <= {part.kind for part in inside}:
                return [*stretches[:number], *inside, *stretches[number + 1 :]]
    return None


def has_moov_in(source: Source, size: int, parts: Iterable[ByteRange]) -> bool:
    """Whether the type of a moov or of its first box stands in one of these parts of a file."""
    window = Window(source, size)
    return any(
        window.find(kind, part.start, part.stop) is not None
        for part in parts
        for kind in (MOOV, MVHD)
    )


def _around_moov(source: Source, last: Stretch) -> list[Stretch]:
    """Media data whose size does not say where it ends, and the moov that stands after it."""
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
    return _around_bare_moov(source, last, window)


def _around_bare_moov(source: Source, last: Stretch, window: Window) -> list[Stretch]:
    """The same where zeros are instead of the header of the moov: its first box is the mvhd."""
    at = last.start
    while (place := window.find(MVHD, at, last.stop)) is not None:
        start = place - 12
        tracks, stop = 0, place - 4
        for kind, _, end in _boxes_in(window, stop, last.stop):
            if kind not in IN_MOOV:
                break
            tracks, stop = tracks + (kind == b"trak"), end
        if start >= last.start and window.take(start, 8) == bytes(8) and tracks:
            before = [Stretch(last.start, start, last.kind or "mdat")] if start > last.start else []
            following = stretches_of(source, last.stop, stop)
            return [*before, Stretch(start, stop, "moov"), *following]
        at = place + 4
    return [last]


def with_right_header(source: Source, size: int, stretches: list[Stretch]) -> View | None:
    """The file with headers of mdat and moov that say where they end, and a track_ID a track.

    Its bytes are where they are in the file, but for those that this takes. None: all is right.
    """
    changes: list[tuple[int, bytes]] = []
    for one, following in pairwise([Stretch(0, 0, ""), *stretches]):
        if one.kind == HEADER_OF_MDAT and following.kind not in ("mdat", HEADER_OF_MDAT):
            changes.append((one.start, (one.stop - one.start).to_bytes(4, "big") + b"free"))
        if following.kind == "moov":
            if one.kind == "mdat":
                changes += _mdat_header(source, size, stretches, one)
            head = read_header(source.read_up_to(ByteRange(following.start, following.start + 32)))
            whole = following.stop - following.start
            if head is None or head.type != MOOV or head.size != whole:
                changes.append((following.start, whole.to_bytes(4, "big") + MOOV))
            if not any(other.kind == "moof" for other in stretches):
                changes += unique_ids(source, following)
            break
    return with_bytes(source, size, changes) if changes else None


def _mdat_header(
    source: Source, size: int, stretches: list[Stretch], mdat: Stretch
) -> list[tuple[int, bytes]]:
    """Where the header of media data stands, and a right one; nothing: it is right."""
    start = next((s.start for s in stretches if s.stop == mdat.start), mdat.start)
    head = read_header(source.read_up_to(ByteRange(start, min(start + 32, size))))
    if head is not None and head.form != "to_end" and start + head.size == mdat.stop:
        return []
    return [(start, b"\0\0\0\1mdat" + (mdat.stop - start).to_bytes(8, "big"))]


def unique_ids(source: Source, moov: Stretch) -> list[tuple[int, bytes]]:
    """Another track_ID for each track that has none, or that of a track before it (8.3.2).

    Returns: where each stands in the file, and what has to stand there.
    """
    window = Window(source, moov.stop)
    fields: list[tuple[int, int]] = []
    for trak, start, stop in _boxes_in(window, moov.start + 8, moov.stop):
        for kind, at, _ in _boxes_in(window, start + 8, stop) if trak == b"trak" else ():
            if kind == b"tkhd":
                # creation and modification times stand before it, longer ones in version 1
                place = at + (28 if window.take(at + 8, 1) == b"\1" else 20)
                fields.append((place, int.from_bytes(window.take(place, 4), "big")))
    taken = {number for _, number in fields}
    unused = (number for number in count(1) if number not in taken)
    changes, known = [], {0}
    for place, number in fields:
        if number in known:
            changes.append((place, next(unused).to_bytes(4, "big")))
        known.add(number)
    return changes


def _boxes_in(window: Window, at: int, stop: int) -> Iterator[tuple[bytes, int, int]]:
    """Type, start and stop of the boxes that follow one another."""
    while at < stop and (head := read_header(window.take(at, 32))) is not None:
        size = head.size_in(stop - at)
        if not size:
            return
        yield head.type, at, at + size
        at += size


def with_bytes(source: Source, size: int, changes: Iterable[tuple[int, bytes]]) -> View:
    """A file with other bytes at some places, in order."""
    parts: list[Part] = []
    at = 0
    for start, data in changes:
        parts += [SourceRange(0, ByteRange(at, start)), data]
        at = start + len(data)
    parts = [part for part in (*parts, SourceRange(0, ByteRange(at, size))) if size_of(part)]
    info = FileInfo(source.name, size, None, source.etag, source.mtime_ns)
    sizes = [size_of(part) for part in parts]
    return View("", [info], "header of mdat", sizes, lambda number: parts[number : number + 1])


def _header(source: Source, at: int, size: int) -> BoxHeader | None:
    """The header of a known box; None: there is none."""
    head = read_header(source.read_up_to(ByteRange(at, min(at + 32, size))))
    if head is None or head.type not in TOP_LEVEL:
        return None
    return head if head.type == b"mdat" or head.size_in(size - at) else None
