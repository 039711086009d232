"""Fragments at a new place and time: the few fields that a move breaks.

Positions that count from the file become positions from the moof: players of MediaSource refuse
declared base offsets, so a copy declares default-base-is-moof instead (ISO/IEC 14496-12, 8.8.7).
That changes the size of the moof, and its data offsets follow. A copy is checked before it is
written: each sample's place in it holds the source's sample.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from fragdex.box_header import read_header
from fragdex.boxes import Box, build, make_box, parse_box
from fragdex.boxes.box import with_changes
from fragdex.boxes.fragments import BASE_DATA_OFFSET, DATA_OFFSET, DEFAULT_BASE_IS_MOOF
from fragdex.boxes.limits import MAX_MOOV_SIZE
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, LimitExceeded, MalformedBox
from fragdex.fragments.table import Int64, SampleTable
from fragdex.record import record

OFFSETS = range(-(1 << 31), 1 << 31)
"""What a data_offset can hold."""


class CopiedRun(NamedTuple):
    """Where the samples of a trun lie: its track, its first byte in the file, its bytes."""

    track: int
    start: int
    size: int


def rebased(moof: Box, stale: Collection[int]) -> Box:
    """The moof without declared base offsets; data offsets are still those of the source.

    Args:
        stale: track_IDs whose positions count from the moof, whatever is declared.
    """
    return with_changes(moof, {"traf": lambda traf: _rebased(traf, stale)})


def _rebased(traf: Box, stale: Collection[int]) -> Box:
    tfhd = traf.find("tfhd")
    if tfhd is None or tfhd.opaque:
        return traf
    if not (tfhd["flags"] & BASE_DATA_OFFSET or tfhd["track_ID"] in stale):
        return traf
    based = tfhd["flags"] & BASE_DATA_OFFSET
    flags = tfhd["flags"] & ~BASE_DATA_OFFSET | DEFAULT_BASE_IS_MOOF
    children: list[Box] = []
    first = bool(based)
    for child in traf:
        if child.type == "tfhd":
            child = child.replace(flags=flags)
        elif child.type == "trun":
            # A first run without a data_offset lies at the base that is no longer declared.
            if first and not child["flags"] & DATA_OFFSET:
                child = child.replace(flags=child["flags"] | DATA_OFFSET)
            first = False
        children.append(child)
    return traf.replace(children=children)


def moved_moof(
    old: Box,
    new: Box,
    to: int,
    moved: Callable[[int], int],
    stale: Collection[int],
    fragment: ByteRange | None = None,
) -> Box:
    """A moof with the data offsets and auxiliary offsets of its new place.

    Args:
        old: as parsed from the source, with its place there.
        new: the same after `rebased`; boxes may have been put into its trafs.
        moved: the new place of a byte of the source that is not in this moof.
        fragment: bytes of the source from the moof to the end of its media data; auxiliary
            offsets that lie in it counted from the start of the file alone are meant so.

    Raises:
        BuildError: an offset does not fit into its field any more.
    """
    inside = _Inside(old, new)

    def place(position: int) -> int:
        return to + inside.of(position) if position in inside.range else moved(position)

    children: list[Box] = []
    first = True
    for before, after in zip(old, new, strict=True):
        if after.type == "traf":
            after = _placed(before, after, first, old.offset, to, place, stale, fragment)
            first = False
        children.append(after)
    return new.replace(children=children)


def _base(traf: Box, first: bool, moof: int, stale: Collection[int]) -> int | None:
    """What data offsets count from; None: the end of the data of the traf before (8.8.7.1)."""
    tfhd = traf.find("tfhd")
    if tfhd is None or tfhd.opaque:
        return None
    flags = tfhd["flags"]
    if tfhd["track_ID"] in stale:
        return moof
    if flags & BASE_DATA_OFFSET:
        return int(tfhd["base_data_offset"])
    return moof if first or flags & DEFAULT_BASE_IS_MOOF else None


def _placed(
    before: Box,
    after: Box,
    first: bool,
    moof: int,
    to: int,
    place: Callable[[int], int],
    stale: Collection[int],
    fragment: ByteRange | None,
) -> Box:
    base = _base(before, first, moof, stale)
    if base is None:
        return after
    offsets = [trun.get("data_offset", 0) for trun in before.find_all("trun")]
    children: list[Box] = []
    number = 0
    for child in after:
        if child.type == "trun":
            if child["flags"] & DATA_OFFSET:
                offset = place(base + offsets[number]) - to
                if offset not in OFFSETS:
                    raise BuildError(
                        "media data is too far from its moof",
                        path="moof/traf/trun",
                        offset=moof,
                        expected="a data_offset of 32 bits",
                        found=offset,
                    )
                child = child.replace(data_offset=offset)
            number += 1
        elif child.type == "saio" and not child.opaque and len(child["entries"]):
            child = _auxiliary(child, base, moof, to, place, fragment)
        children.append(child)
    return after.replace(children=children)


def _auxiliary(
    saio: Box,
    base: int,
    moof: int,
    to: int,
    place: Callable[[int], int],
    fragment: ByteRange | None,
) -> Box:
    """Auxiliary offsets (8.7.9): they count from the base of the traf, or from the file's start."""
    entries: Any = saio["entries"].copy()
    limit = 1 << (64 if saio["version"] else 32)
    for row, offset in enumerate(entries["offset"].tolist()):
        absolute = fragment is not None and offset in fragment and base + offset not in fragment
        new = place(offset) if absolute else place(base + offset) - to
        if not 0 <= new < limit:
            raise BuildError(
                "an auxiliary offset does not fit any more",
                path="moof/traf/saio",
                offset=moof,
                expected=f"0 to {limit - 1}",
                found=new,
            )
        entries["offset"][row] = new
    return saio.replace(entries=entries)


class _Inside:
    """Where the bytes of a moof go when boxes inside of it change their sizes."""

    def __init__(self, old: Box, new: Box) -> None:
        self.range = ByteRange(old.offset, old.offset + old.size)
        self._parts: list[tuple[int, int]] = []
        at = old.header_size
        for before, after in zip(old, new, strict=True):
            self._parts.append((before.offset, at))
            if after.type == "traf":
                inner, left = at + before.header_size, list(before)
                for child in after:
                    # A box that was put in pairs with none of the source.
                    if left and left[0].type == child.type:
                        self._parts.append((left.pop(0).offset, inner))
                    inner += len(build(child, parent="traf"))
            at += len(build(after, parent="moof"))

    def of(self, position: int) -> int:
        """Bytes from the start of the new moof."""
        start, at = max(
            (part for part in self._parts if part[0] <= position),
            default=(self.range.start, 0),
        )
        return at + position - start


def runs_of(
    moof: Box, at: int, default_sizes: Mapping[int, int], stale: Collection[int] = ()
) -> Iterator[CopiedRun]:
    """The runs of a moof that stands at byte `at`, by the rule (8.8.7.1, 8.8.8.1)."""
    end = at
    for number, traf in enumerate(moof.find_all("traf")):
        tfhd = traf.find("tfhd")
        base = _base(traf, number == 0, at, stale)
        end = base = end if base is None else base
        if tfhd is None or tfhd.opaque:
            continue
        track = tfhd["track_ID"]
        default = tfhd.get("default_sample_size", default_sizes.get(track, 0))
        for trun in traf.find_all("trun"):
            start = base + trun["data_offset"] if "data_offset" in trun else end
            samples = trun["samples"]
            names = samples.dtype.names or ()
            sized = "sample_size" in names
            size = int(samples["sample_size"].sum()) if sized else default * trun["sample_count"]
            end = start + size
            yield CopiedRun(track, start, size)


def copied_parts(pieces: Iterable[bytes | ByteRange]) -> list[tuple[ByteRange, int]]:
    """The ranges among pieces of a copy, in their order, and where each begins in the copy."""
    copied = []
    at = 0
    for piece in pieces:
        if isinstance(piece, ByteRange):
            copied.append((piece, at))
            at += piece.size
        else:
            at += len(piece)
    return copied


def check_runs(
    source: Iterable[CopiedRun],
    copy: Iterable[CopiedRun],
    copied: Sequence[tuple[ByteRange, int]],
    moof: int,
    size: int | None = None,
) -> None:
    """Compare the runs that a moof names in the source with those it names in the copy.

    Args:
        copied: ranges of the source in file order, none over another, and where each begins in
            the copy.
        size: bytes of the source; samples that it does not hold need not be in the copy.

    Raises:
        BuildError: the bytes of a run are not copied, or lie elsewhere.
    """
    for old, new in zip(source, copy, strict=True):
        if old.track != new.track or old.size != new.size:
            raise _wrong(moof, old, new)
        if not old.size or (size is not None and old.start + old.size > size):
            continue
        at = bisect_right(copied, old.start, key=lambda one: one[0].start) - 1
        if at < 0 or old.start + old.size > copied[at][0].stop:
            raise BuildError(
                "samples of a fragment are outside it, so it cannot be copied as a whole",
                path="moof/traf/trun",
                offset=moof,
                expected="bytes of the fragment's own boxes",
                found=f"bytes {old.start} to {old.start + old.size}",
            )
        part, start = copied[at]
        if new.start - start != old.start - part.start:
            raise _wrong(moof, old, new._replace(start=new.start - start + part.start))


class Places(NamedTuple):
    """Where parts of a source begin in a copy, rising, and where they start in the source."""

    begins: Int64
    starts: Int64


def check_samples(source: SampleTable, copy: SampleTable, copied: Places, track: int) -> None:
    """Compare samples of the source with those that the tables of a copy name.

    Args:
        copied: of the parts of the source in the copy.

    Raises:
        BuildError: a sample is not where the copy says, or has another size or time.
    """
    wrong = "other samples" if len(source) != len(copy) else ""
    for name in () if wrong else ("size", "dts", "cts", "sync"):
        if not np.array_equal(getattr(source, name), getattr(copy, name)):
            wrong = f"another {name}"
    filled = np.flatnonzero(source.size > 0)
    if len(filled) and not wrong:
        begins, starts = copied
        part = np.searchsorted(begins, copy.offset[filled], side="right") - 1
        back = starts[part] + copy.offset[filled] - begins[part]
        if (part < 0).any() or (back != source.offset[filled]).any():
            wrong = "samples at other places"
    if wrong:
        raise BuildError(
            "a copy would not have the samples of its source",
            path="moov/trak/mdia/minf/stbl",
            expected=f"the samples of track {track}",
            found=wrong,
            advice="please report this file",
        )


def _wrong(moof: int, old: CopiedRun, new: CopiedRun) -> BuildError:
    return BuildError(
        "a copy would not have the samples of its source",
        path="moof/traf/trun",
        offset=moof,
        expected=f"track {old.track}, bytes {old.start} to {old.start + old.size} of the source",
        found=f"track {new.track}, bytes {new.start} to {new.start + new.size}",
        advice="please report this file",
    )


Read = Callable[[ByteRange], bytes]

TFXD = "6d1d9b0542d544e680e2141daff757b2"
# They describe the source from this place on, by its byte sizes, or repeat what stands in front.
OBSOLETE = ("sidx", "ssix", "mfra", "moov", "ftyp")


@record(frozen=True, slots=True)
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
    """The pieces of one fragment (the boxes in `place`), put at byte `to` of another file."""
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
        elif box.type == "prft" and data is not None and move.back:
            yield _prft(data, move)
        else:
            yield ByteRange(box.start, box.stop)


def decode_times(read: Read, place: ByteRange) -> dict[int, int]:
    """track_ID → decode time by its first tfdt, in ticks, in the fragment at `place`."""
    by_track: dict[int, int] = {}
    for box, data in _boxes(read, place):
        if box.type == "moof" and data is not None:
            for traf in parse_box(data, offset=box.start).find_all("traf"):
                tfhd, tfdt = traf.find("tfhd"), traf.find("tfdt")
                if tfhd is not None and tfdt is not None:
                    by_track.setdefault(tfhd["track_ID"], _signed(tfdt))
    return by_track


@record(frozen=True, slots=True)
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
        if code in ("moof", "emsg", "prft", *OBSOLETE):
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
    return with_changes(moof, {"traf": lambda traf: _timed_traf(traf, move)})


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


def _prft(data: bytes, move: Move) -> bytes:
    """When a sample was made: its media time counts on the track's timeline."""
    box = parse_box(data)
    if box.opaque:
        return data
    back = move.back.get(box["reference_track_ID"], 0)
    return build(box.replace(media_time=(box["media_time"] - back) % _range(box)))
