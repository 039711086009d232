"""Segment indexes (sidx): read sans-IO, and the approximate tables that follow from them.

The references of a sidx follow each other without gaps from its anchor: the first byte after it,
plus `first_offset` (ISO/IEC 14496-12, 8.16.3). They may point to other sidx boxes, always forward.
A sidx speaks of one stream in its own timescale and in presentation time, that is after the edit
list. Tables hold composition times: the track's shift is taken off again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from fragdex.box_header import read_header
from fragdex.boxes import Box, parse_box
from fragdex.byterange import ByteRange
from fragdex.errors import FormatError
from fragdex.fragments.findings import Finding, Findings
from fragdex.fragments.table import NULL, FragmentFlags, FragmentTable, Int64, SyncTable
from fragdex.fragments.track_info import Movie
from fragdex.record import record

Tables = tuple[FragmentTable, SyncTable]

LEADS = (b"moof", b"styp", b"emsg", b"prft", b"sidx")
"""What a fragment begins with, or what introduces it."""
FAR = 1 << 62
"""Times from here on are not claims but damage; sums and differences of two still fit."""


@record(frozen=True, slots=True, eq=False)
class Stream:
    """The subsegments of one stream: columns of equal length, in file order.

    Attributes:
        reference_id: usually the track_ID.
        timescale: ticks a second of `time`, `duration` and `access`; 0: unknown.
        offset: int64 bytes of the file; with the sidx boxes that stand directly before.
        size: int64 bytes up to the next subsegment.
        reference: int64 bytes of the file, as the sidx says.
        time: int64 earliest presentation time.
        duration: int64 ticks up to the next one's earliest presentation time.
        access: int64 presentation time of the first access point; NULL where none is known.
    """

    reference_id: int
    timescale: int
    offset: Int64
    size: Int64
    reference: Int64
    time: Int64
    duration: Int64
    access: Int64

    def __len__(self) -> int:
        return len(self.offset)

    @property
    def stop(self) -> int:
        """Byte after the last subsegment; 0 where there is none."""
        return int((self.offset + self.size).max()) if len(self) else 0


@record(frozen=True, slots=True)
class SegmentMap:
    """What the sidx boxes of a file say, merged.

    Attributes:
        streams: reference_ID → its subsegments, in the order met.
        covered_until: byte after the last subsegment that follows without a gap; the rest of the
            file is to be walked from here. 0 where nothing is referenced.
    """

    streams: Mapping[int, Stream]
    covered_until: int
    findings: tuple[Finding, ...]

    def doubts(
        self, *, size: int | None = None, heads: Mapping[int, bytes] | None = None
    ) -> tuple[Finding, ...]:
        """Reasons not to believe the map; empty where there is none.

        Args:
            heads: file position → at least 8 bytes from there, as far as they are at hand; where a
                reference starts there, a box that can begin a subsegment must stand there.
        """
        findings = Findings()
        if not any(len(stream) for stream in self.streams.values()):
            findings.add("sidx-empty", "the sidx names no subsegment", path="sidx")
        for number, stream in self.streams.items():
            if len(stream):
                _doubt(findings, number, stream, size, heads or {})
        return findings.all()


def _doubt(
    findings: Findings, number: int, stream: Stream, size: int | None, heads: Mapping[int, bytes]
) -> None:
    def add(code: str, message: str, at: int | None = None) -> None:
        findings.add(code, message, offset=at, path="sidx", track=number)

    if size is not None and stream.stop > size:
        add("sidx-past-end", "the sidx promises more bytes than the file has", stream.stop)
    if (stream.size <= 0).any():
        add("sidx-empty-reference", "a reference of the sidx has no bytes")
    places, times = stream.reference, stream.time
    if (places[1:] <= places[:-1]).any() or (times[1:] < times[:-1]).any():
        add("sidx-order", "positions or times of the sidx do not increase")
    if not stream.timescale:
        add("sidx-timescale", "the sidx has the timescale 0")
    if (stream.access == NULL).all():
        add("sidx-without-access", "the sidx names no access point")
    for at in heads.keys() & {int(stream.reference[0]), int(stream.reference[-1])}:
        header = read_header(heads[at])
        if header is None or header.type not in LEADS or header.impossible:
            add("sidx-lie", "there is no fragment where the sidx says", at)


def rescaled(ticks: Int64, multiply: int, divide: int, add: int = 0) -> Int64:
    """(ticks × multiply + add) ÷ divide, to the nearest whole number; NULL stays NULL.

    Exact for any numbers; what does not fit becomes NULL, as does everything for `divide` 0.
    """
    if not len(ticks) or (multiply == divide != 0 and not add):
        return ticks
    if divide <= 0:
        return np.full(len(ticks), NULL)
    known = ticks != NULL
    whole = np.where(known, ticks, 0)
    largest = max(int(whole.max()), -int(whole.min()))
    if 2 * largest * multiply + 2 * abs(add) + divide < 1 << 63:
        scaled = (whole * (2 * multiply) + (2 * add + divide)) // (2 * divide)
        return np.where(known, scaled, NULL)
    exact = [(2 * (tick * multiply + add) + divide) // (2 * divide) for tick in whole.tolist()]
    fits = [abs(tick) < FAR for tick in exact]
    return np.where(
        known & fits, [t if fit else 0 for t, fit in zip(exact, fits, strict=True)], NULL
    )


def approximate(
    *,
    offset: Int64,
    size: Int64,
    moof: Int64 | None,
    start: Int64,
    stop: Int64,
    access: Int64,
    flags: FragmentFlags = FragmentFlags.APPROXIMATE,
) -> Tables:
    """The tables of a track of which only places and times are known.

    Args:
        offset, size: bytes of the fragments, in file order.
        moof: offsets of their moofs; None where they are not known.
        start, stop: composition times, NULL where they are not known.
        access: composition time of the sync sample to seek to in each; NULL: none is known.
    """
    n = len(offset)
    unknown = np.full(n, NULL)
    timed = (start != NULL) & (stop != NULL)
    fragments = FragmentTable(
        offset=offset,
        size=size,
        moof_offset=unknown if moof is None else moof,
        data_start=unknown,
        data_stop=unknown,
        dts=unknown,
        duration=np.where(timed, stop - start, NULL),
        cts_min=start,
        cts_end=stop,
        sample_start=unknown,
        sample_count=unknown,
        first_sync=unknown,
        flags=np.full(n, flags, np.uint32),
    )
    row = np.flatnonzero(access != NULL)
    cts = access[row]
    if (cts[1:] < cts[:-1]).any():
        order = np.argsort(cts, kind="stable")
        row, cts = row[order], cts[order]
    nothing = np.full(len(row), NULL)
    zeros = np.zeros(len(row), np.int64)
    return fragments, SyncTable(cts, nothing, zeros, zeros + 1, nothing, zeros, row)


def tables(
    segments: SegmentMap, movie: Movie, findings: Findings | None = None
) -> dict[int, Tables]:
    """track_ID → fragment and sync table, as the sidx boxes tell them.

    A track with a sidx of its own gets the times of that. A file with one sidx has all its tracks
    in the same byte ranges: the others get the same rows with the times of that sidx, flagged
    TIMES_GUESSED, and a seek in them leads to the fragment that the sidx names for that moment;
    muxers cut the tracks of a fragment within about a frame of each other.

    Args:
        segments: must be without doubts.
        movie: its tracks; without any, each stream becomes a track in its own timescale.
    """
    findings = findings if findings is not None else Findings()
    streams = {number: stream for number, stream in segments.streams.items() if len(stream)}
    if not streams:
        return {}
    if not movie.tracks:
        return {n: _table(s, s.timescale, Fraction(0)) for n, s in streams.items()}
    streams, lead = _named(streams, movie, findings)
    tables_read = {}
    for info in movie.tracks:
        flags = FragmentFlags.APPROXIMATE
        if info.id not in streams:
            flags |= FragmentFlags.TIMES_GUESSED
            findings.add(
                "sidx-one-stream",
                "the sidx is about another track; times of that track are used",
                path="sidx",
                track=info.id,
            )
        stream = streams.get(info.id, lead)
        timescale = info.timescale or stream.timescale
        tables_read[info.id] = _table(stream, timescale, info.shift(movie.timescale), flags)
    return tables_read


def _named(
    streams: dict[int, Stream], movie: Movie, findings: Findings
) -> tuple[dict[int, Stream], Stream]:
    """The streams by track_ID, and the one whose times serve tracks without their own."""
    by_track = {info.id: streams[info.id] for info in movie.tracks if info.id in streams}
    pictures = [info for info in movie.tracks if info.kind == "video"]
    if not by_track:
        number, stream = next(iter(streams.items()))
        main = (pictures or list(movie.tracks))[0]
        findings.add(
            "sidx-unknown-stream",
            f"the sidx is about stream {number}, which is not a track; track {main.id} is used",
            path="sidx",
        )
        by_track = {main.id: stream}
    lead = next((by_track[i.id] for i in pictures if i.id in by_track), None)
    return by_track, lead or next(iter(by_track.values()))


def _table(
    stream: Stream,
    timescale: int,
    shift: Fraction,
    flags: FragmentFlags = FragmentFlags.APPROXIMATE,
) -> Tables:
    """Presentation time in the stream's ticks → composition time in the track's, in one step."""
    multiply = timescale * shift.denominator
    divide = stream.timescale * shift.denominator
    add = -shift.numerator * stream.timescale
    ends = np.where(stream.time == NULL, NULL, stream.time + stream.duration)
    return approximate(
        offset=stream.offset,
        size=stream.size,
        moof=None,
        start=rescaled(stream.time, multiply, divide, add),
        stop=rescaled(ends, multiply, divide, add),
        access=rescaled(stream.access, multiply, divide, add),
        flags=flags,
    )


MAX_DEPTH = 16
"""sidx inside sidx. Three levels of full boxes hold more fragments than a file has bytes."""
MAX_SIDX = 1 << 17
"""sidx boxes of one file: a day of one-second segments with one each is below it."""
MAX_REFERENCES = 1 << 24
"""References of one file in all, as many as a scan takes top-level boxes."""
FIRST_GUESS = 4096
"""Bytes requested where a sidx must be: 330 references; the rest is requested once it is known."""
LARGEST = 32 + 16 + 12 * 65535
"""Bytes of the largest sidx, with a 64-bit size."""

LEAD = (b"styp", b"emsg", b"prft", b"free", b"skip")
"""What may stand before a sidx at the place that another sidx names."""

SEEKABLE = np.array([True, True, True, True, False, False, False, False])
"""SAP types to start at: 1 to 3 begin with a sync sample, 0 with 'starts_with_SAP' does not say
which; 4 is a gradual refresh (ISO/IEC 14496-12, Annex I)."""


class SidxReader:
    """Collects the sidx boxes of a file and requests those that others point to.

    Args:
        leads: ranges of known styp, emsg and prft boxes; where they stand directly before a
            subsegment they belong to it, as the sidx boxes do.
    """

    def __init__(self, leads: Iterable[ByteRange] = ()) -> None:
        self._boxes: dict[int, Box] = {}
        self._nested = False
        self._asked: dict[int, int] = {}
        self._entry: dict[int, int] = {}
        self._refused: set[int] = set()
        self._leads = {lead.stop: lead.start for lead in leads}
        self._findings = Findings()

    def add(self, box: Box) -> None:
        """Take a parsed sidx that knows its place."""
        if box.type == "sidx" and "references" in box and len(self._boxes) < MAX_SIDX:
            self._boxes[box.offset] = box
            self._nested |= bool(box["references"]["reference_type"].any())

    def feed(self, offset: int, data: Any) -> None:
        """Take bytes of the file from `offset` on, as one of `need` requested them.

        Bytes too short for the sidx are no error: `need` requests more. What is no sidx is noted.
        """
        view = memoryview(data).cast("B")
        at = 0
        while (header := read_header(view, at)) is not None:
            length = header.size
            if header.type in LEAD and header.fits(len(view) - at):
                at += length
                continue
            if header.type != b"sidx" or not 8 <= length <= LARGEST:
                break
            if length > len(view) - at:
                # A second answer that is still too short: the file ends inside the box.
                if self._asked.get(offset, 0) < at + length:
                    self._asked[offset] = at + length
                    return
                break
            try:
                box = parse_box(view[at:], offset=offset + at)
            except FormatError as error:
                self._findings.add("sidx-damaged", error.message, offset=offset + at, path="sidx")
                break
            self.add(box)
            self._entry[offset] = offset + at
            return
        self._refused.add(offset)

    @property
    def need(self) -> tuple[ByteRange, ...]:
        """Ranges where a sidx is said to stand that is not known yet, in file order.

        A range may reach past the end of the file: read as much as there is.
        """
        if not self._nested:
            return ()
        missing: dict[int, int] = {}
        for _ in self._walk(missing):
            pass
        return tuple(
            ByteRange.of(at, max(self._asked.get(at, 0), min(size, FIRST_GUESS)))
            for at, size in sorted(missing.items())
        )

    def segments(self) -> SegmentMap:
        """Everything that the known boxes say; boxes still needed leave a gap."""
        findings = Findings(self._findings.all())
        parts: dict[int, list[_Part]] = {}
        covered: dict[int, int] = {}
        # Of two that begin together the longer one: a first index may cover seconds only.
        for part in sorted(self._walk({}, findings), key=lambda part: (part.start, -part.stop)):
            done = covered.get(part.reference_id, 0)
            if part.start < done:
                # Indexed already: one sidx for the whole file in front, and one in every segment.
                part = part.rows(int(np.searchsorted(part.columns[0], done)))
            if len(part):
                covered[part.reference_id] = part.stop
                parts.setdefault(part.reference_id, []).append(part)
        leads = {box.stop: box.offset for box in self._boxes.values()} | self._leads
        leads |= {box: entry for entry, box in self._entry.items() if box != entry}
        begin: dict[int, int] = {}
        for stop, start in sorted(leads.items(), key=lambda lead: lead[1]):
            begin[stop] = begin.get(start, start)
        streams = {number: _stream(number, boxes, begin) for number, boxes in parts.items()}
        return SegmentMap(streams, _covered(streams, self._boxes, findings), findings.all())

    def _walk(self, missing: dict[int, int], findings: Findings | None = None) -> Iterable[_Part]:
        """Stretches of references to media, in file order; places of unknown boxes on the way."""
        findings = findings or Findings()
        seen: set[int] = set()
        budget = MAX_REFERENCES
        for root in sorted(self._boxes):
            # A reference never points back: what was not met from a box before is a root.
            stack: list[tuple[int, int, int]] = [(root, 0, 0)]
            while stack:
                at, depth, size = stack.pop()
                at = self._entry.get(at, at)
                if at in seen:
                    continue
                box = self._boxes.get(at)
                if box is None:
                    if at in self._refused:
                        findings.add(
                            "sidx-lie",
                            "there is no sidx where another one says",
                            offset=at,
                            path="sidx",
                        )
                    else:
                        missing[at] = size
                    continue
                seen.add(at)
                budget -= len(box["references"])
                if depth > MAX_DEPTH or budget < 0 or len(missing) > MAX_SIDX:
                    findings.add(
                        "sidx-limit",
                        "sidx boxes are nested too deep",
                        offset=at,
                        path="sidx",
                    )
                    continue
                references = _references(box, findings)
                if references is None:
                    continue
                part, children = references
                yield from part
                stack.extend((at, depth + 1, size) for at, size in reversed(children))


@record(slots=True)
class _Part:
    """References to media that follow each other, from one sidx.

    Columns: place, size, time, end of the time, access point; as in `Stream`.
    """

    reference_id: int
    timescale: int
    columns: tuple[Int64, ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    @property
    def start(self) -> int:
        return int(self.columns[0][0]) if len(self) else 0

    @property
    def stop(self) -> int:
        return int(self.columns[0][-1] + self.columns[1][-1]) if len(self) else 0

    def rows(self, first: int, stop: int | None = None) -> _Part:
        columns = tuple(column[first:stop] for column in self.columns)
        return _Part(self.reference_id, self.timescale, columns)


def _references(box: Box, findings: Findings) -> tuple[list[_Part], list[tuple[int, int]]] | None:
    """The stretches of media references of a sidx, and places and sizes of further boxes."""
    rows = box["references"]
    anchor = box.stop + box["first_offset"]
    time = box["earliest_presentation_time"]
    if time >= 1 << 63:
        findings.add(
            "sidx-negative-time", "a time of 2^63 or more was read as signed", offset=box.offset
        )
        time -= 1 << 64
    if anchor >= FAR or abs(time) >= FAR:
        findings.add(
            "sidx-damaged", "a position or time of the sidx is impossible", offset=box.offset
        )
        return None
    size = rows["referenced_size"].astype(np.int64)
    duration = rows["subsegment_duration"].astype(np.int64)
    place = anchor + np.cumsum(size) - size
    start = time + np.cumsum(duration) - duration
    types = rows["SAP_type"]
    # SAP_delta_time counts from the subsegment's earliest presentation time. A type without
    # starts_with_SAP is that of the first access point inside.
    seekable = SEEKABLE[types] & ((types != 0) | (rows["starts_with_SAP"] != 0))
    access = np.where(seekable, start + rows["SAP_delta_time"].astype(np.int64), NULL)
    columns = (place, size, start, start + duration, access)
    part = _Part(box["reference_ID"], box["timescale"], columns)
    further = np.flatnonzero(rows["reference_type"] == 1)
    if not len(further):
        return [part], []
    children = list(zip(place[further].tolist(), size[further].tolist(), strict=True))
    edges = pairwise([-1, *further.tolist(), len(rows)])
    return [part.rows(low + 1, high) for low, high in edges if high - low > 1], children


def _stream(number: int, parts: list[_Part], leads: Mapping[int, int]) -> Stream:
    """The parts of one stream, which are sorted by place, as one."""
    timescale = next((part.timescale for part in parts if part.timescale), 0)
    for part in parts:
        if part.timescale != timescale:
            place, size, *times = part.columns
            times = [rescaled(column, timescale, part.timescale) for column in times]
            part.columns = (place, size, *times)
    reference, size, time, end, access = (
        np.concatenate(columns) for columns in zip(*(p.columns for p in parts), strict=True)
    )
    offset = reference
    if leads:
        offset = reference.copy()
        first = 0
        for part in parts:
            offset[first] = leads.get(part.start, part.start)
            first += len(part)
        size = size + (reference - offset)
    duration = np.where(time == NULL, NULL, end - time)
    return Stream(number, timescale, offset, size, reference, time, duration, access)


def _covered(streams: Mapping[int, Stream], boxes: Mapping[int, Box], findings: Findings) -> int:
    """Where the bytes that are spoken for end, from the first subsegment on."""
    spans = [(box.offset, box.stop) for box in boxes.values()]
    begin, ends = FAR, []
    for stream in streams.values():
        if not len(stream):
            continue
        stops = stream.offset + stream.size
        breaks = np.flatnonzero(stream.offset[1:] != stops[:-1])
        first = stream.offset[np.append(0, breaks + 1)].tolist()
        spans += zip(first, stops[np.append(breaks, -1)].tolist(), strict=True)
        begin = min(begin, int(stream.offset[0]))
        ends.append((int(stream.offset[0]), stream.stop))
    if begin == FAR:
        return 0
    reached = begin
    for start, stop in sorted(spans):
        if start > reached:
            break
        reached = max(reached, stop)
    if len({start for start, _ in ends}) == 1 and len({stop for _, stop in ends}) > 1:
        # Each stream is indexed over the same bytes, and one index is shorter.
        findings.add("sidx-unequal", "the sidx boxes of the tracks do not end together")
        reached = min(stop for _, stop in ends)
    return reached
