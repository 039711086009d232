"""A copy of a fragmented file with a segment index in front of its fragments, as pieces to write.

Media bytes are copied by range and never read. What the moved bytes break is repaired: chunk
offsets (stco becomes co64 where it overflows), auxiliary information and item locations of the
moov, declared base offsets of fragments, the mfra. A sidx that stands in front already is left out;
one in front of a later fragment stays, since it counts from its own end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fragdex.box_header import read_header
from fragdex.boxes import Box, build, make_box, parse_box
from fragdex.boxes.box import with_changes
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, InexactIndex, MalformedBox
from fragdex.formats.sidx import boxes
from fragdex.formats.subsegments import Subsegments, period_of, reference_track, subsegments
from fragdex.fragments.table import NULL, FragmentFlags, Int64
from fragdex.indexing.moov import entries_elsewhere, plain_init
from fragdex.muxing.clip_fragments import check_runs, copied_parts, moved_moof, rebased, runs_of
from fragdex.muxing.movie import agreeing_brands, with_next_id, with_relative
from fragdex.seeking.model import Index, Period, Track
from fragdex.seeking.times import NO_SHIFT, TimeLike, exact_time, floor_ticks

BASE_DATA_OFFSET, DEFAULT_BASE_IS_MOOF = 0x1, 0x020000
"""base-data-offset-present in tfhd's flags (ISO/IEC 14496-12, 8.8.7)."""


class Shifts:
    """Where positions of a file go when ranges of it are replaced by more or fewer bytes.

    Args:
        edits: (range, bytes that take its place); an empty range is an insertion, and what stands
            at its place moves after it.
    """

    def __init__(self, edits: Iterable[tuple[ByteRange, int]]) -> None:
        changes = sorted((part.stop, size - part.size) for part, size in edits)
        self._edges = np.array([stop for stop, _ in changes], np.int64)
        self._growth = np.cumsum([0, *(grown for _, grown in changes)])

    def of(self, positions: Int64) -> Int64:
        """The new places of old positions; inside a replaced range they keep to its start."""
        moved: Int64 = positions + self._growth[np.searchsorted(self._edges, positions, "right")]
        return moved

    def one(self, position: int) -> int:
        """The new place of one position, which may lie anywhere in 64 bits."""
        place = int(np.searchsorted(self._edges, min(position, 1 << 62), "right"))
        return position + int(self._growth[place])


def mended_box(data: bytes, offset: int, shifts: Shifts) -> bytes:
    """A moov or meta with chunk offsets, auxiliary offsets and item locations moved.

    It grows where an offset needs 64 bits now (ISO/IEC 14496-12, 8.7.5, 8.7.9, 8.11.3).
    """
    data = plain_init(data)
    box = parse_box(data, offset=offset)
    mended = _mended(box, shifts)
    if mended.type == "moov":
        mended = with_next_id(mended)
    return data if mended is box else build(mended)


def _mended(box: Box, shifts: Shifts, away: npt.NDArray[np.bool_] | None = None) -> Box:
    """A box moved; `away` tells which chunks of its track lie in another file, and stay."""
    if box.type == "trak":
        away = _chunks_elsewhere(box)
    if box.type in ("stco", "co64") and not box.opaque:
        return _chunks(box, shifts, away)
    if box.type == "saio" and not box.opaque:
        return _auxiliary(box, shifts)
    if box.type == "iloc" and box.opaque:
        try:
            data = _locations(bytes(box["data"]), shifts)
        except IndexError:  # a damaged one, which names no item
            return box
        return box if data == box["data"] else box.replace(data=data)
    children = [_mended(child, shifts, away) for child in box.children]
    if all(new is old for new, old in zip(children, box.children, strict=True)):
        return box
    return box.replace(children=children)


def _chunks_elsewhere(trak: Box) -> npt.NDArray[np.bool_] | None:
    """Which chunks of a track lie in other files, by their sample entries; None: none."""
    entries, stsc = entries_elsewhere(trak), trak.find("mdia/minf/stbl/stsc")
    chunks = trak.find("mdia/minf/stbl/stco") or trak.find("mdia/minf/stbl/co64")
    if not entries or stsc is None or stsc.opaque or chunks is None or chunks.opaque:
        return None
    rows = np.sort(stsc["entries"], order="first_chunk")
    away = np.isin(rows["sample_description_index"], list(entries))
    numbers = np.arange(1, len(chunks["entries"]) + 1)
    row = np.searchsorted(rows["first_chunk"], numbers, "right") - 1
    return away[np.maximum(row, 0)] if len(away) else None


def _chunks(box: Box, shifts: Shifts, away: npt.NDArray[np.bool_] | None) -> Box:
    old = box["entries"]["chunk_offset"].astype(np.int64)
    new = shifts.of(old)
    if away is not None:
        new = np.where(away, old, new)
    if np.array_equal(old, new):
        return box
    rows = new.astype(">u8").view([("chunk_offset", ">u8")])
    if box.type == "stco" and int(new.max()) >> 32:
        return make_box("co64", parent="stbl", flags=box["flags"], entries=rows)
    return box.replace(entries=rows)


def _auxiliary(box: Box, shifts: Shifts) -> Box:
    old = box["entries"]["offset"].astype(np.int64)
    new = shifts.of(old)
    if np.array_equal(old, new):
        return box
    rows = new.astype(">u8").view([("offset", ">u8")])
    return box.replace(version=int(box["version"] or int(new.max()) >> 32 > 0), entries=rows)


def _locations(data: bytes, shifts: Shifts) -> bytes:
    """The content of an iloc: items that lie in the file itself are moved (8.11.3)."""
    version = data[0] if data else 255
    if version > 2 or len(data) < 8:
        return data
    widths = [data[4] >> 4, data[4] & 15, data[5] >> 4, data[5] & 15 if version else 0]
    offset_size, length_size, base_size, index_size = widths
    wide = 4 if version == 2 else 2
    out = bytearray(data)
    at = 6 + wide
    count = int.from_bytes(data[6:at], "big")

    def number(where: int, size: int) -> int:
        if where + size > len(data):
            raise IndexError(where)
        return int.from_bytes(data[where : where + size], "big")

    def put(where: int, size: int, value: int) -> None:
        if value >> 8 * size:
            raise BuildError("an item location does not fit any more", path="meta/iloc")
        out[where : where + size] = value.to_bytes(size, "big")

    for _ in range(count):
        at += wide
        method = 0
        if version:
            method = number(at, 2) & 15
            at += 2
        here = method == 0 and number(at, 2) == 0  # of this file, not of another one
        base_at = at + 2
        base = number(base_at, base_size)
        extents = number(base_at + base_size, 2)
        at = base_at + base_size + 2
        extent = index_size + offset_size + length_size
        places = [at + n * extent + index_size for n in range(extents if extent else 1)]
        at += extents * extent
        if not here:
            continue
        moves = [shifts.one(p) - p for p in (base + number(place, offset_size) for place in places)]
        if len(set(moves)) == 1 and base_size:
            put(base_at, base_size, base + moves[0])
        elif any(moves):
            for place, move in zip(places, moves, strict=True):
                put(place, offset_size, number(place, offset_size) + move)
    return bytes(out)


def mended_mfra(data: bytes, offset: int, shifts: Shifts) -> bytes:
    """An mfra with its moofs moved (8.8.10); times and numbers stay."""

    def tfra(box: Box) -> Box:
        if box.opaque or not len(box["entries"]):
            return box
        rows = box["entries"].astype([(name, np.int64) for name in box["entries"].dtype.names])
        rows["moof_offset"] = shifts.of(rows["moof_offset"])
        version = int(box["version"] or int(rows["moof_offset"].max()) >> 32 > 0)
        return box.replace(version=version, entries=rows)

    moved = with_changes(parse_box(data, offset=offset), {"tfra": tfra})
    size = len(build(moved))
    return build(with_changes(moved, {"mfro": lambda mfro: mfro.replace(size=size)}))


def needs_rebasing(moof: bytes, header: int) -> bool:
    """Whether a moof declares a base offset or has auxiliary ones, which may count from afar."""
    return any(
        code == b"saio" or moof[body + 3] & BASE_DATA_OFFSET
        for traf, end in _inside(moof, header, len(moof), b"traf")
        for code in (b"tfhd", b"saio")
        for body, _ in _inside(moof, traf, end, code)
    )


def _is_relative(moof: bytes, header: int) -> bool:
    return any(
        moof[body + 1] & DEFAULT_BASE_IS_MOOF >> 16
        for traf, end in _inside(moof, header, len(moof), b"traf")
        for body, stop in _inside(moof, traf, end, b"tfhd")
        if stop - body >= 4
    )


def _inside(data: bytes, at: int, stop: int, code: bytes) -> list[tuple[int, int]]:
    """Bodies, as (start, stop), of the boxes of one type among the boxes from `at` to `stop`."""
    places: list[tuple[int, int]] = []
    while (header := read_header(data, at, stop)) is not None:
        if not header.fits(stop - at):
            break
        if header.type == code:
            places.append((at + header.length, at + header.size))
        at += header.size
    return places


Read = Callable[[ByteRange], bytes]
Piece: TypeAlias = bytes | ByteRange
"""Bytes to write as they are, or a range of the source to copy."""

Edit: TypeAlias = tuple[ByteRange, bytes]
"""A range of the source and the bytes that take its place."""

Moofs: TypeAlias = Mapping[int, Mapping[int, tuple[int, int, bool]]]

MAX_MENDED = 1 << 29
"""Bytes of a moov, moof, meta or mfra that is read as a whole."""


def moofs_of(index: Index) -> Moofs:
    """What is known of each moof, by offset and track_ID.

    First byte of the track's samples, byte after the media data, whether its base is stale.
    """
    moofs: dict[int, dict[int, tuple[int, int, bool]]] = {}
    for track in index.tracks:
        table = track.fragments
        real = table.rows((table.flags & FragmentFlags.VIRTUAL) == 0)
        if (real.moof_offset == NULL).any():
            raise InexactIndex(
                "the positions of the movie fragments are not known",
                advice="build the index with exact=True",
            )
        start = np.where(real.data_start == NULL, real.moof_offset, real.data_start)
        columns = (real.moof_offset, start, real.offset + real.size, real.flags)
        for moof, first, stop, flags in zip(*(c.tolist() for c in columns), strict=True):
            stale = bool(flags & FragmentFlags.REPAIRED)
            moofs.setdefault(moof, {})[track.id] = (first, stop, stale)
    return dict(sorted(moofs.items()))


def default_sizes(period: Period) -> dict[int, int]:
    """track_ID → default_sample_size of its trex, where there is one."""
    infos = (track.info for track in period.tracks)
    return {info.id: info.defaults.size for info in infos if info.defaults is not None}


class ChangedFragments:
    """The moofs of a file that change in a copy of it.

    Attributes:
        edits: the moofs that change; their new bytes are zeros of the right size.
        relative: whether a moof declares default-base-is-moof, here or in the copy.
        grown: the moofs whose size changes, and the bytes that they gain.
    """

    def __init__(self, read: Read, moofs: Moofs, sizes: Mapping[int, int]) -> None:
        self._moofs, self._sizes = moofs, sizes
        self._changing: list[tuple[ByteRange, bytes]] = []
        self.edits: list[Edit] = []
        self.grown: list[tuple[ByteRange, int]] = []
        self.relative = False
        for at in moofs:
            head = read_header(read(ByteRange.of(at, 16)))
            if head is None or head.type != b"moof" or head.size < head.length:
                raise MalformedBox("there is no moof where the index says", offset=at)
            part, header = ByteRange.of(at, head.size), head.length
            data = whole(read, part)
            self.relative |= _is_relative(data, header)
            stale = self._stale(at)
            if not stale and not needs_rebasing(data, header):
                continue
            size = len(build(rebased(parse_box(data, offset=at), stale)))
            self._changing.append((part, data))
            self.edits.append((part, bytes(size)))
            if size != part.size:
                self.grown.append((part, size - part.size))
            self.relative = True

    def _stale(self, moof: int) -> set[int]:
        return {track for track, (_, _, stale) in self._moofs[moof].items() if stale}

    def finished(self, edits: list[Edit], shifts: Shifts, size: int) -> list[Piece]:
        """The pieces of the copy, checked: each sample is where the copy says.

        Args:
            shifts: where everything goes, these moofs included.
        """
        parts = []
        for part, data in self._changing:
            old, stale = parse_box(data, offset=part.start), self._stale(part.start)
            stop = max(stop for _, stop, _ in self._moofs[part.start].values())
            fragment = ByteRange(part.start, max(stop, part.stop))
            to = shifts.one(part.start)
            new = moved_moof(old, rebased(old, stale), to, shifts.one, stale, fragment)
            parts.append((part, build(new)))
        pieces = list(joined([*edits, *parts], size))
        copied = copied_parts(pieces)
        for (part, data), (_, new_data) in zip(self._changing, parts, strict=True):
            to = shifts.one(part.start)
            check_runs(
                runs_of(
                    parse_box(data, offset=part.start),
                    part.start,
                    self._sizes,
                    self._stale(part.start),
                ),
                runs_of(parse_box(new_data), to, self._sizes),
                copied,
                part.start,
                size,
            )
        self._check_others(shifts)
        return pieces

    def _check_others(self, shifts: Shifts) -> None:
        """Moofs that stay as they are must keep their distance to their samples."""
        changing = {part.start for part, _ in self._changing}
        rows = [
            (moof, first)
            for moof, tracks in self._moofs.items()
            for first, _, _ in tracks.values()
            if moof not in changing
        ]
        if not rows:
            return
        places = np.array(rows, np.int64)
        moved = shifts.of(places) - places
        # What is inserted in front of the moof comes before it; the moof itself ends after it.
        wrong = np.flatnonzero(moved[:, 0] != moved[:, 1])
        if len(wrong):
            moof, first = rows[int(wrong[0])]
            raise BuildError(
                "a moof and its media data would be separated in the copy",
                path="moof",
                offset=moof,
                found=f"media data at byte {first}",
            )


def whole(read: Read, part: ByteRange) -> bytes:
    """The bytes of a box."""
    if part.size > MAX_MENDED:
        raise BuildError(
            "a box that must be changed is too large",
            offset=part.start,
            expected=f"at most {MAX_MENDED} bytes",
            found=part.size,
        )
    return read(part)


def joined(edits: list[Edit], size: int) -> Iterator[Piece]:
    """The source in file order, with the edits in it; an insertion goes before the rest."""
    reached = 0
    for part, data in sorted(edits, key=lambda edit: edit[0]):
        if part.start > reached:
            yield ByteRange(reached, part.start)
        if data:
            yield data
        reached = max(reached, part.stop)
    if reached < size:
        yield ByteRange(reached, size)


REPLACED = ("sidx", "ssix")
"""Indexes in front of the first fragment: the new one takes their place."""
MENDING = {"moov": mended_box, "meta": mended_box, "mfra": mended_mfra}


def embed(
    index: Index,
    read: Read,
    *,
    track: int | None = None,
    period: int | None = None,
    segment_duration: TimeLike = 0,
) -> list[Piece]:
    """The pieces of the copy, to be written one after the other.

    Args:
        index: of the source; exact, so that the places of all moofs are known.
        track: the reference stream of the only sidx; None: one for every track, the first video
            or audio track first.
        period: number of the period that gets the sidx; needed where there are several.
        segment_duration: as for `sidx.write`.

    Packets have the same sizes and times as before. Base offsets that the index found to be stale
    are repaired.

    Raises:
        BuildError: there are no movie fragments, or what must be repaired cannot be.
        InexactIndex: places or times of fragments are not known.
    """
    governing = period_of(index, period)
    chosen = reference_track(governing, track)
    size = index.file.size
    if size is None:
        raise BuildError("the size of the source is not known")
    moofs = moofs_of(index)
    streams = [(chosen, _stretches(governing, chosen, segment_duration, False))]
    for other in governing.tracks if track is None else ():
        if other.id != chosen.id and len(other.fragments):
            # What cannot be said of another track is left out: its times are guessed from this.
            with suppress(BuildError, InexactIndex):
                streams.append((other, _stretches(governing, other, segment_duration, True)))
    place, stop = int(streams[0][1].offset[0]), streams[0][1].stop
    _refuse_data_in_front(moofs)
    front = list(walked(read, 0, min(moofs)))
    tail = list(walked(read, stop, size))
    # Before a later period stands what describes an earlier one.
    first_period = place <= min(moofs)
    gone = [part for code, part in front if code in REPLACED and first_period]
    if len(index.periods) == 1:
        gone += repeated([*front, *tail])
    fragments = ChangedFragments(read, moofs, default_sizes(governing))
    # What the fragments gain, and lose; all else between the new boxes and the end stays.
    grown = [*fragments.grown, *((part, -part.size) for part in gone)]
    indexes = b""
    for one, segments in reversed(streams):
        first, last = int(segments.offset[0]), segments.stop
        between = first - place
        for part, more in grown:
            if part.start < first:
                between += more * (part.start >= place)
            elif part.start < last:
                segments.size[np.searchsorted(segments.offset, part.start, "right") - 1] += more
        indexes = build(boxes(segments, one.id, one.timescale, between + len(indexes))) + indexes
    edits: list[Edit] = [(ByteRange(place, place), indexes), *((part, b"") for part in gone)]
    edits += brands(read, front, fragments.relative)
    if fragments.grown:
        edits += obsolete(read, min(moofs), stop)
    lies = [part for code, part in tail if code == "mfra" and _is_lie(whole(read, part), moofs)]
    edits += [(part, b"") for part in lies]
    outside = [one for one in (*front, *tail) if one[1] not in [*lies, *gone]]
    shifts, boxes_mended = mended(read, outside, [*edits, *fragments.edits])
    return fragments.finished([*edits, *boxes_mended], shifts, size)


def _is_lie(mfra: bytes, moofs: Moofs) -> bool:
    """Whether an mfra names a moof where there is none."""
    entries = [box.get("entries", ()) for box in parse_box(mfra).find_all("tfra")]
    return any(int(at) not in moofs for rows in entries if len(rows) for at in rows["moof_offset"])


def _refuse_data_in_front(moofs: Moofs) -> None:
    for moof, tracks in moofs.items():
        for track, (first, _, _) in tracks.items():
            if first < moof:
                raise BuildError(
                    f"media data of track {track} comes before its moof, and a sidx cannot "
                    "refer to such a fragment",
                    path="moof",
                    offset=moof,
                    expected=f"media data after byte {moof}",
                    found=f"media data at byte {first}",
                    advice="move it first: fragdex extract FILE 0 end --fragmented -o COPY.mp4",
                )


def brands(
    read: Read,
    outside: Iterable[tuple[str, ByteRange]],
    is_relative: bool,
    moov: Box | None = None,
) -> list[Edit]:
    """The ftyp, where it does not list the brands that hold.

    Args:
        moov: whose composition offsets may need a brand.
    """
    edits: list[Edit] = []
    for code, part in outside:
        if code == "ftyp" and part.size < MAX_MENDED:
            box = parse_box(read(part))
            told = agreeing_brands(with_relative(box) if is_relative else box, moov)
            if told is not box:
                edits.append((part, build(told)))
    return edits


def obsolete(read: Read, start: int, stop: int) -> list[Edit]:
    """Segment indexes as free space: they speak of sizes that have changed."""
    edits: list[Edit] = []
    for code, part in walked(read, start, stop):
        if code in REPLACED and part.size < MAX_MENDED:
            data = read(part)
            edits.append((part, data[:4] + b"free" + data[8:]))
    return edits


def _stretches(period: Period, track: Track, duration: TimeLike, own: bool) -> Subsegments:
    ticks = floor_ticks(duration, track.timescale, NO_SHIFT)
    return subsegments(period, track.id, min_ticks=ticks, at_sync=exact_time(duration) > 0, own=own)


def repeated(boxes: Sequence[tuple[str, ByteRange]]) -> list[ByteRange]:
    """Each ftyp and moov after the first: a file has one (ISO/IEC 14496-12, 4.3, 8.2.1)."""
    types = [code for code, _ in boxes]
    return [
        part
        for number, (code, part) in enumerate(boxes)
        if code in ("ftyp", "moov") and code in types[:number]
    ]


def walked(read: Read, at: int, stop: int) -> Iterator[tuple[str, ByteRange]]:
    """Types and places of the top-level boxes; what is not whole ends the walk, and is copied."""
    while stop - at >= 8:
        head = read(ByteRange(at, min(at + 16, stop)))
        header = read_header(head)
        if header is None or not (size := header.size_in(stop - at)):
            return
        yield header.type.decode("latin-1"), ByteRange.of(at, size)
        at += size


Mending: TypeAlias = tuple[Callable[[bytes, int, Shifts], bytes], ByteRange, int, bytes]
"""What moves a box, what the result stands in place of, where the box begins, and its bytes."""


def mended(
    read: Read,
    outside: Iterable[tuple[str, ByteRange]],
    edits: list[Edit],
    more: Iterable[Mending] = (),
) -> tuple[Shifts, list[Edit]]:
    """Where everything goes, and the boxes that speak of places in the file, `more` first.

    A moov that grows moves what it speaks of, so that it is repaired again until its size stays:
    each turn can only give more of its tables 64 bits.
    """
    todo = [
        *more,
        *(
            (MENDING[code], part, part.start, whole(read, part))
            for code, part in outside
            if code in MENDING
        ),
    ]
    changed: list[Edit] = [(place, data) for _, place, _, data in todo]
    while True:
        shifts = Shifts((part, len(data)) for part, data in [*edits, *changed])
        before = [len(data) for _, data in changed]
        changed = [(place, mend(data, start, shifts)) for mend, place, start, data in todo]
        if [len(data) for _, data in changed] == before:
            return shifts, changed
