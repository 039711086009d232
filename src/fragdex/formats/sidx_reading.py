"""Reading segment indexes, sans-IO: sidx boxes in, byte ranges and times of subsegments out.

The references of a sidx follow each other without gaps from its anchor: the first byte after it,
plus `first_offset` (ISO/IEC 14496-12, 8.16.3). They may point to other sidx boxes, always forward.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from fragdex.box_header import read_header
from fragdex.boxes import Box, parse_box
from fragdex.byterange import ByteRange
from fragdex.errors import FormatError
from fragdex.formats.segment_map import FAR, SegmentMap, Stream, rescaled
from fragdex.fragments.findings import Findings
from fragdex.fragments.table import NULL, Int64

__all__ = ["SidxReader"]

MAX_DEPTH = 16
"""sidx inside sidx. Three levels of full boxes hold more fragments than a file has bytes."""
MAX_SIDX = 1 << 17
"""sidx boxes of one file: a day of one-second segments with one each is below it."""
MAX_REFERENCES = 1 << 24
"""References of one file in all, as many as a scan takes top-level boxes."""
FIRST_GUESS = 4096
"""Bytes asked for where a sidx must be: 330 references; the rest is asked for once it is known."""
LARGEST = 32 + 16 + 12 * 65535
"""Bytes of the largest sidx, with a 64-bit size."""

LEAD = (b"styp", b"emsg", b"prft", b"free", b"skip")
"""What may stand before a sidx at the place that another sidx names."""

SEEKABLE = np.array([True, True, True, True, False, False, False, False])
"""SAP types to start at: 1 to 3 begin with a sync sample, 0 with 'starts_with_SAP' does not say
which; 4 is a gradual refresh (ISO/IEC 14496-12, Annex I)."""


class SidxReader:
    """Collects the sidx boxes of a file and asks for those that others point to.

    Args:
        leads: ranges of known styp, emsg and prft boxes; where they stand directly before a
            subsegment they belong to it, as the sidx boxes do.

    >>> from fragdex.boxes import build, make_box
    >>> data = build(make_box("sidx", timescale=1000, references=[(0, 500, 2000, 1, 1, 0)]))
    >>> reader = SidxReader()
    >>> reader.feed(100, data)
    >>> reader.need, reader.segments().covered_until
    ((), 644)
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
        """Take bytes of the file from `offset` on, as one of `need` asked for them.

        Bytes too short for the sidx are no error: `need` asks for more. What is no sidx is noted.
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
        streams = {number: _stream(number, found, begin) for number, found in parts.items()}
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
                found = _references(box, findings)
                if found is None:
                    continue
                part, children = found
                yield from part
                stack.extend((at, depth + 1, size) for at, size in reversed(children))


@dataclass(slots=True)
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
    """Where the bytes that are spoken for end, going on from the first subsegment."""
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
