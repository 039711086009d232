"""Fragments at a new place and time: the few fields that a move breaks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from fragdex.box_header import read_header
from fragdex.boxes import Box, build, make_box, parse_box
from fragdex.boxes.limits import MAX_MOOV_SIZE
from fragdex.byterange import ByteRange
from fragdex.errors import LimitExceeded, MalformedBox
from fragdex.formats.copy_check import check_runs
from fragdex.formats.moved_moof import moved_moof, rebased, runs_of

__all__ = ["Move", "decode_times", "moved_fragment"]

Read = Callable[[ByteRange], bytes]

TFXD = "6d1d9b0542d544e680e2141daff757b2"
# They describe the source from this place on: its byte sizes, its clock, its look-ahead.
OBSOLETE = ("sidx", "ssix", "prft")


@dataclass(frozen=True, slots=True)
class Move:
    """What a clip changes in its fragments.

    Attributes:
        seconds: what the clip takes off all times.
        back: the same in ticks of each track, by track_ID; empty: times are kept.
        firsts: track_ID → decode time of the first fragment, for those that do not say it;
            taken out at that fragment.
        repaired: (moof offset, track_ID) whose declared base is stale: positions count from the
            moof.
        repair: look for more of them, as an index that was not made from the moofs cannot tell.
        default_sizes: track_ID → default_sample_size of its trex.
    """

    seconds: Fraction
    back: dict[int, int]
    firsts: dict[int, int]
    repaired: set[tuple[int, int]]
    repair: bool
    default_sizes: Mapping[int, int] = field(default_factory=dict)


def moved_fragment(
    read: Read, place: ByteRange, to: int, move: Move
) -> Iterator[bytes | ByteRange]:
    """The pieces of one fragment (the boxes in `place`), put at byte `to` of another file.

    Raises:
        BuildError: samples of the fragment would not be where the copy says.
    """
    boxes = list(_boxes(read, place))
    media = [box for box, _ in boxes if box.type in ("mdat", "imda")]
    moofs: dict[int, tuple[Box, Box, set[int]]] = {}
    places: list[tuple[_Place, int]] = []
    at = to
    for box, data in boxes:
        places.append((box, at))
        at += box.size
        if box.type == "moof" and data is not None:
            old = parse_box(data, offset=box.start)
            if move.repair:
                move.repaired.update(_stale(old, media))
            stale = {track for moof, track in move.repaired if moof == box.start}
            new = _timed(rebased(old, stale), move)
            moofs[box.start] = old, new, stale
            at += len(build(new)) - box.size

    def moved(position: int) -> int:
        number = bisect_right(places, position, key=lambda pair: pair[0].start)
        box, start = places[max(number - 1, 0)]
        return start + position - box.start

    copied = [(ByteRange(box.start, box.stop), start) for box, start in places]
    for (box, data), (_, at) in zip(boxes, places, strict=True):
        if box.start in moofs and data is not None:
            old, new, stale = moofs[box.start]
            around = ByteRange(place.start, place.stop)
            new = moved_moof(old, new, at, moved, stale, around)
            check_runs(
                runs_of(old, old.offset, move.default_sizes, stale),
                runs_of(new, at, move.default_sizes),
                copied,
                old.offset,
            )
            yield build(new)
        elif box.type in OBSOLETE and data is not None:
            yield data[:4] + b"free" + data[8:]
        elif box.type == "emsg" and data is not None and move.back:
            yield _emsg(data, move)
        else:
            yield ByteRange(box.start, box.stop)


def decode_times(read: Read, place: ByteRange) -> dict[int, int]:
    """track_ID → decode time by its first tfdt, in ticks, in the fragment at `place`."""
    found: dict[int, int] = {}
    for box, data in _boxes(read, place):
        if box.type == "moof" and data is not None:
            for traf in parse_box(data, offset=box.start).find_all("traf"):
                tfhd, tfdt = traf.find("tfhd"), traf.find("tfdt")
                if tfhd is not None and tfdt is not None:
                    found.setdefault(tfhd["track_ID"], _signed(tfdt))
    return found


@dataclass(frozen=True, slots=True)
class _Place:
    type: str
    start: int
    stop: int

    @property
    def size(self) -> int:
        return self.stop - self.start


def _boxes(read: Read, place: ByteRange) -> Iterator[tuple[_Place, bytes | None]]:
    """The boxes in a range, and the bytes of those that may change."""
    at = place.start
    while at < place.stop:
        head = read(ByteRange(at, min(at + 16, place.stop)))
        header = read_header(head)
        if header is None or not (size := header.size_in(place.stop - at)):
            raise MalformedBox(
                "the fragment is not where the index says",
                offset=at,
                expected=f"a box of at most {place.stop - at} bytes",
                found=header.size if header else 0,
            )
        code, data = header.type.decode("latin-1"), None
        if code in ("moof", "emsg", *OBSOLETE):
            if size > MAX_MOOV_SIZE:
                raise LimitExceeded("the box is too large", offset=at, expected=MAX_MOOV_SIZE)
            data = read(ByteRange.of(at, size))
        yield _Place(code, at, at + size), data
        at += size


def _signed(tfdt: Box) -> int:
    value: int = tfdt["baseMediaDecodeTime"]
    return value - (1 << 64) if tfdt["version"] and value >> 63 else value


def _stale(moof: Box, media: Sequence[_Place]) -> set[tuple[int, int]]:
    """(moof offset, track_ID) of trafs whose declared base misses the media data.

    Where the first run starts outside of every mdat, and inside one counted from the moof, all that
    count from this base are wrong by the same distance.
    """
    bases: dict[int, list[int]] = {}
    stale = set()
    for traf in moof.find_all("traf"):
        tfhd, trun = traf.find("tfhd"), traf.find("trun")
        if tfhd is None or "base_data_offset" not in tfhd:
            continue
        base = tfhd["base_data_offset"]
        bases.setdefault(base, []).append(tfhd["track_ID"])
        offset = trun.get("data_offset", 0) if trun is not None else 0
        declared, from_moof = (
            any(box.start + 8 <= at + offset < box.stop for box in media)
            for at in (base, moof.offset)
        )
        if from_moof and not declared:
            stale.add(base)
    return {(moof.offset, track) for base in stale for track in bases[base]}


def _timed(moof: Box, move: Move) -> Box:
    """A moof with its decode times moved."""
    children = [_timed_traf(child, move) if child.type == "traf" else child for child in moof]
    if all(new is old for new, old in zip(children, moof, strict=True)):
        return moof
    return moof.replace(children=children)


def _timed_traf(traf: Box, move: Move) -> Box:
    tfhd = traf.find("tfhd")
    track = tfhd["track_ID"] if tfhd is not None else 0
    back = move.back.get(track)
    if back is None:
        return traf
    children: list[Box] = []
    for child in traf.children:
        if child.type == "tfdt":
            time = (_signed(child) - back) % _range(child)
            child = child.replace(baseMediaDecodeTime=time)
        elif child.type == "uuid" and child.get("user_type") == TFXD and not child.opaque:
            time = (child["fragment_absolute_time"] - back) % _range(child)
            child = child.replace(fragment_absolute_time=time)
        children.append(child)
    first = move.firsts.pop(track, None)
    if first is not None and traf.find("tfdt") is None:
        tfdt = make_box("tfdt", version=1, baseMediaDecodeTime=(first - back) % (1 << 64))
        children.insert(1, tfdt)
    return traf.replace(children=children)


def _range(box: Box) -> int:
    """How many times a version 0 or 1 field can tell."""
    return 1 << (64 if box["version"] else 32)


def _emsg(data: bytes, move: Move) -> bytes:
    """An event whose time counts from the start of the presentation (version 1)."""
    box = parse_box(data)
    if box.opaque or box["version"] != 1 or not box["timescale"]:
        return data
    back = int(move.seconds * box["timescale"])
    return build(box.replace(presentation_time=max(0, box["presentation_time"] - back)))
