"""What stands between the samples of fragments: events, and other boxes around and in the moofs.

An event message (`emsg`, ISO/IEC 23009-1, 5.10.3.3) comes along into made fragments: in front of
the one whose media its own stood in front of. Its place and its time are kept here, its bytes stay
in the source. All else is counted, so that what a copy lacks can be named.

Only fragments that the index marks are looked into; a file without such boxes costs nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from fragdex.box_header import read_header
from fragdex.boxes import Box, build, make_box, parse, parse_box
from fragdex.byterange import ByteRange
from fragdex.errors import FormatError
from fragdex.fragments.table import NULL, FragmentFlags, Int64
from fragdex.indexing.groups import TYPES
from fragdex.muxing.census import BoxKind, LeftOut, content, renumbered
from fragdex.muxing.view import Block, Derived, Scattered, SourceRange
from fragdex.record import record
from fragdex.seeking.model import Period, Track

if TYPE_CHECKING:
    from fragdex.muxing.plan import PlannedTrack

Read = Callable[[ByteRange], bytes]

MOST_EVENTS: Final = 1 << 15
"""Events that come along: one a second for nine hours."""
MOST_SCHEMES: Final = 64
"""Kinds of events that manifests list."""
MOST_LOOKS: Final = 1 << 16
"""Moofs that are looked into; of a file that is far, as many as `FAR_LOOKS`."""
FAR_LOOKS: Final = 64
_LARGEST: Final = 1 << 20
"""Bytes of an event, and of another box that is looked into."""
_AHEAD: Final = 4096
MOST_KEPT: Final = 64 << 20
"""Bytes of boxes in trafs that are kept for what they say of samples."""
MOST_BOXES: Final = 1 << 17
"""Boxes at the top level that are walked of one file."""


class Event(NamedTuple):
    """One event message.

    Attributes:
        place: bytes of the box there.
        header: bytes of its own header, without version and flags.
        version: of the box: 0 counts from the start of its segment, 1 from that of the file.
        time: presentation time in ticks.
        arrives: seconds of presentation at which the media after it begin.
        scheme: what it is and of what kind: scheme_id_uri and value.
        is_moved: whether its time is another than the box says.
    """

    source: int
    place: ByteRange
    header: int
    version: int
    timescale: int
    time: int
    arrives: Fraction
    scheme: tuple[str, str]
    is_moved: bool = False

    @property
    def seconds(self) -> Fraction:
        """Its presentation time in seconds."""
        return Fraction(self.time, self.timescale)

    def moved(self, by: Fraction) -> Event:
        """The same so many seconds later; it cannot be before 0."""
        if not by:
            return self
        time = max(self.time + int(by * self.timescale // 1), 0)
        return self._replace(time=time, arrives=self.arrives + by, is_moved=True)

    @property
    def block(self) -> Block:
        """The box as version 1: as it is in the source where it is so there."""
        if self.version == 1 and not self.is_moved:
            return SourceRange(self.source, self.place)
        at = np.array([self.place.start]), np.array([self.place.size])
        size = self.place.size - self.header + 8 + 4 * (self.version == 0)
        return Derived(Scattered(self.source, *at), partial(_rewritten, time=self.time), 0, size)


def _rewritten(data: Sequence[bytes], *, time: int) -> bytes:
    """An event message of version 1 with a presentation time, out of one of any version."""
    box = parse_box(data[0])
    names = ("flags", "scheme_id_uri", "value", "timescale", "event_duration", "id")
    same = {name: box[name] for name in (*names, "message_data")}
    return build(make_box("emsg", version=1, presentation_time=time, **same))


class TrafBoxes(NamedTuple):
    """What a traf says of its samples besides their places, times and access points.

    Attributes:
        data: its boxes on groups (sbgp, csgp, sgpd) and parts (subs) of samples.
    """

    track: int
    samples: int
    data: bytes

    @classmethod
    def of(cls, traf: Box, moof: bytes, at: int) -> TrafBoxes:
        """That of a traf in a moof that stands at byte `at`."""
        head = traf.find("tfhd")
        own = (box for box in traf if box.type in _OF_SAMPLES and not box.opaque)
        data = b"".join(
            moof[box.offset - at : box.stop - at]
            for box in own
            if box.get("grouping_type") not in TYPES
        )
        samples = sum(int(one.get("sample_count", 0)) for one in traf.find_all("trun"))
        return cls(0 if head is None else int(head.get("track_ID", 0)), samples, data)


Trafs: TypeAlias = Mapping[int, Sequence[TrafBoxes]]
"""What the trafs of moofs say, by the first byte of each moof."""
_OF_SAMPLES: Final = ("subs", "sbgp", "csgp", "sgpd")


@record(slots=True)
class Between:
    """What stands between the samples of a period.

    Attributes:
        events: in file order.
        boxes: content other than events: how many boxes of each kind.
        outer: the same of what stands before the first fragment and the moov, and after the last.
        late: how many of the events stand after the last fragment.
        findings: what was not looked into.
        left: boxes at the top level that may be walked yet.
        trafs: what fragments say of their samples.
        room: bytes of that which may be kept yet.
    """

    events: list[Event] = field(default_factory=list)
    boxes: Counter[BoxKind] = field(default_factory=Counter)
    outer: Counter[BoxKind] = field(default_factory=Counter)
    late: int = 0
    findings: list[LeftOut] = field(default_factory=list)
    left: int = MOST_BOXES
    trafs: dict[int, list[TrafBoxes]] = field(default_factory=dict)
    room: int = MOST_KEPT

    @property
    def everything(self) -> Counter[BoxKind]:
        """All of it but for events."""
        return self.boxes + self.outer

    def moved(self, by: Fraction) -> Between:
        """The same with events so many seconds later."""
        return replace(self, events=[event.moved(by) for event in self.events])

    def within(self, start: Fraction | float, stop: Fraction | float) -> Between:
        """That of a stretch of seconds (stop exclusive), which becomes 0 to its length."""
        begin = Fraction(start) if start > 0 else Fraction(0)
        here = (
            one for one in self.events if one.arrives < stop and (one.arrives >= begin or not begin)
        )
        return replace(self, events=[one.moved(-begin) for one in here])

    def since(self, start: Fraction) -> Between:
        """That of the media from a second of presentation on."""
        return replace(self, events=[one for one in self.events if one.arrives >= start])

    def carried_by(self, media: PlannedTrack, later: bool) -> Between:
        """With events that arrive with the samples of a track that has them in front of it.

        These are the samples of its first moof after the event: where they are in a file that
        grows, nothing changes that follows, and no other track.

        Args:
            later: whether more comes. Then events after its last moof are left for later, else
                they stand at its end.
        """
        if not self.events:
            return self
        rows = media.track.fragments
        firsts, stops = rows.sample_start, rows.sample_start + rows.sample_count
        if media.numbers is not None:
            firsts, stops = (np.searchsorted(media.numbers, one) for one in (firsts, stops))
        events = []
        for event in self.events:
            row = int(np.searchsorted(rows.moof_offset, event.place.start))
            low, high = (int(firsts[row]), int(stops[row])) if row < len(rows) else (0, 0)
            shown = media.presentation[low:high]
            if not len(shown) and later:
                continue
            at = int(shown.min()) if len(shown) else media.end
            events.append(event._replace(arrives=Fraction(at, media.timescale)))
        return replace(self, events=events)

    @classmethod
    def joined(
        cls, parts: Iterable[tuple[Between, bytes, Mapping[int, int]]], init: bytes
    ) -> Between:
        """That of several files as one, without their trafs and findings.

        Args:
            parts: of each file, with its ftyp and moov, and track_ID → that of the output.
            init: ftyp and moov that stand for all of theirs.
        """
        whole, heads = cls(), Counter[BoxKind]()
        for one, own, ids in parts:
            whole.events += one.events
            whole.boxes += renumbered(one.boxes, ids)
            whole.outer += renumbered(one.outer, ids)
            heads |= renumbered(content(parse(own), {*ids}), ids)
        whole.outer += heads - content(parse(init))
        return whole

    @property
    def event_boxes(self) -> Counter[BoxKind]:
        """The events by their schemes, for copies that have no place for them."""
        return Counter(BoxKind(0, f"emsg {event.scheme[0]}") for event in self.events)


def between(
    period: Period,
    read: Read,
    *,
    size: int | None = None,
    source: int = 0,
    remote: bool = False,
    part: ByteRange | None = None,
) -> Between:
    """What stands between the samples of a period, and in its moofs.

    Args:
        part: what is copied: between fragments outside of it nothing is looked for.
    """
    found = Between()
    if not _is_marked(period):
        return found
    marked = _marked(period)
    looks = FAR_LOOKS if remote else MOST_LOOKS
    beside = [
        at
        for at, (flags, _) in marked.items()
        if flags & FragmentFlags.BESIDE and (part is None or at in part)
    ]
    for at in beside[:looks]:
        _inside(found, read, at)
    if len(beside) > looks:
        what = f"what {len(beside) - looks:,} moofs may say besides samples"
        found.findings.append(LeftOut(what, f"only {looks:,} are looked into"))
    known = fragments_of(period)
    # what stands between a moof and its media data is looked for in a file that is near
    places, starts = [at for at, _ in known], [stop if remote else at for at, stop in known]
    walk = partial(_walk, found, read, source)
    for at, (flags, starts_at) in marked.items():
        number = bisect_left(places, at)
        if not flags & FragmentFlags.BETWEEN:
            continue
        inside = part is None or at in part
        begin = max((place.stop for place in period.init if place.stop <= at), default=0)
        if not number and period.number == 0:
            walk(ByteRange(0, begin), starts_at, found.outer)
        if inside:
            walk(ByteRange(starts[number - 1] if number else begin, at), starts_at, found.boxes)
        if number == len(places) - 1 and size is not None:
            if inside:
                walk(ByteRange(starts[number], known[number][1]), starts_at, found.boxes)
            before = len(found.events)
            walk(ByteRange(known[number][1], size), starts_at, found.outer)
            found.late = len(found.events) - before
            if not inside:
                del found.events[before:]
    if not places and size is not None:
        walk(ByteRange(0, size), Fraction(0), found.outer)
    if not found.left:
        what = f"what stands after the first {MOST_BOXES:,} boxes"
        found.findings.append(LeftOut(what, "no more are looked at"))
    return found


_MARKS: Final = np.uint32(FragmentFlags.BETWEEN | FragmentFlags.BESIDE)


def _is_marked(period: Period) -> bool:
    return any((track.fragments.flags & _MARKS).any() for track in period.tracks)


def _marked(period: Period) -> dict[int, tuple[int, Fraction]]:
    """The moofs with content next to them: their marks, and seconds at which their media begin."""
    marked: dict[int, tuple[int, Fraction]] = {}
    for track in period.tracks:
        table = track.fragments
        flags = table.flags & _MARKS
        rows = np.flatnonzero((flags != 0) & (table.moof_offset != NULL))
        columns = table.moof_offset[rows], flags[rows], table.cts_min[rows]
        for at, flag, cts in zip(*(c.tolist() for c in columns), strict=True):
            known = cts != NULL and track.timescale
            begin = track.presentation(cts).fraction if known else Fraction(0)
            before = marked.get(at, (0, begin))
            marked[at] = flag | before[0], min(begin, before[1])
    return dict(sorted(marked.items()))


def fragments_of(period: Period) -> list[tuple[int, int]]:
    """Where each moof begins and its fragment ends, in file order."""
    stops: dict[int, int] = {}
    for track in period.tracks:
        table = track.fragments
        rows = np.flatnonzero(table.moof_offset != NULL)
        ends = (table.offset + table.size)[rows].tolist()
        for at, stop in zip(table.moof_offset[rows].tolist(), ends, strict=True):
            stops[at] = max(stop, stops.get(at, 0))
    return sorted(stops.items())


def fronts_of(period: Period) -> dict[int, int]:
    """Where copies of fragments begin that have content in front of them that is not theirs alone.

    Returns: first byte of a fragment → the byte after what stands before, another fragment or the
    moov.
    """
    if not _is_marked(period):
        return {}
    known = fragments_of(period)
    places = [at for at, _ in known]
    fronts: dict[int, int] = {}
    for track in period.tracks:
        table = track.fragments
        rows = np.flatnonzero((table.flags & np.uint32(FragmentFlags.BETWEEN)) != 0)
        columns = table.offset[rows].tolist(), table.moof_offset[rows].tolist()
        for offset, at in zip(*columns, strict=True):
            if at == NULL:
                continue
            number = bisect_left(places, at)
            begin = max((part.stop for part in period.init if part.stop <= at), default=offset)
            fronts[offset] = min(known[number - 1][1] if number else begin, offset)
    return fronts


def _inside(found: Between, read: Read, at: int) -> None:
    """Take the content of a moof, and keep what it says of samples."""
    header = read_header(read(ByteRange.of(at, 16)))
    if header is None or header.type != b"moof" or not header.fits(_LARGEST << 4):
        return
    try:
        data = read(ByteRange.of(at, header.size))
        moof = parse_box(data, offset=at)
    except FormatError:
        return
    found.boxes.update(content([moof]))
    trafs = [TrafBoxes.of(traf, data, at) for traf in moof.find_all("traf")]
    size = sum(len(one.data) for one in trafs)
    if not size:
        return
    if size <= found.room:
        found.room -= size
        found.trafs[at] = trafs
    elif found.room:
        found.room = 0
        what = "what other moofs say of groups and parts of samples"
        found.findings.append(LeftOut(what, f"only {MOST_KEPT:,} bytes of them are kept"))


def said_of(track: Track, trafs: Trafs) -> Iterator[tuple[int, int, Sequence[Box]]]:
    """What fragments say of a track: number of the first sample, samples and boxes of each traf."""
    if not trafs:
        return
    table = track.fragments
    places, starts = table.moof_offset.tolist(), table.sample_start.tolist()
    known = dict(zip(reversed(places), reversed(starts), strict=True))
    for at, several in trafs.items():
        first = known.get(at, NULL)
        for one in several if first != NULL else ():
            if one.track == track.id:
                yield first, one.samples, parse(one.data)
                first += one.samples


def _walk(
    found: Between,
    read: Read,
    source: int,
    part: ByteRange,
    begin: Fraction,
    boxes: Counter[BoxKind],
) -> None:
    """Take the content at the top level of a part of the file.

    Args:
        begin: seconds at which the media after it begin.
    """
    ahead = _Ahead(read, part.stop)
    at = part.start
    while found.left:
        head = ahead.bytes(at, 32)
        header = read_header(head)
        if header is None or not (size := header.size_in(part.stop - at)):
            return
        found.left -= 1
        kind = header.type.decode("latin-1")
        if kind == "moov" and at > part.start and boxes is found.outer and part.start:
            return  # of another period
        if kind == "emsg":
            place = ByteRange.of(at, size)
            _take_event(found, ahead.bytes(at, min(size, _LARGEST)), place, begin, source)
        elif kind not in ("ftyp", "moov", "moof", "mdat", "mfra"):
            data = ahead.bytes(at, size) if size <= _LARGEST else head
            boxes.update(_content_of(data, kind))
        at += size


def _content_of(data: bytes, kind: str) -> Counter[BoxKind]:
    try:
        return content([parse_box(data)])
    except FormatError:
        return Counter([BoxKind(0, kind)])


def _take_event(
    found: Between, data: bytes, place: ByteRange, begin: Fraction, source: int
) -> None:
    try:
        box = parse_box(data) if len(data) == place.size else None
    except FormatError:
        box = None
    if box is None or box.opaque or box["version"] > 1 or not box["timescale"]:
        found.boxes[BoxKind(0, "emsg")] += 1
        return
    scheme = str(box["scheme_id_uri"]), str(box["value"])
    if len(found.events) >= MOST_EVENTS:
        found.boxes[BoxKind(0, "emsg")] += 1
        return
    scale, version = int(box["timescale"]), int(box["version"])
    time = int(box.get("presentation_time", 0))
    if not version:
        time = max(int(begin * scale // 1) + int(box["presentation_time_delta"]), 0)
    header = box.header_size
    found.events.append(Event(source, place, header, version, scale, time, begin, scheme))


class _Ahead:
    """Reads small boxes that follow each other at one go."""

    def __init__(self, read: Read, stop: int) -> None:
        self._read, self._stop = read, stop
        self._start, self._data = 0, b""

    def bytes(self, at: int, size: int) -> bytes:
        """So many bytes from there on; fewer where the part ends."""
        stop = min(at + size, self._stop)
        if stop <= at:
            return b""
        if at < self._start or stop > self._start + len(self._data):
            until = min(max(stop, at + _AHEAD), self._stop)
            self._start, self._data = at, self._read(ByteRange(at, until))
        return self._data[at - self._start : stop - self._start]


def by_segment(
    events: Iterable[Event], times: Int64, scale: int, stop: Fraction | None
) -> Mapping[int, list[Block]]:
    """The events in front of each segment, by its number.

    Args:
        times: presentation time of each segment, in ticks, rising.
        stop: seconds at which what is known ends: what arrives later is left for later; None: the
            last segment has it.
    """
    parts: dict[int, list[Block]] = {}
    for event in events:
        if stop is not None and event.arrives >= stop:
            continue
        at = int(event.arrives * scale // 1)
        number = max(int(np.searchsorted(times, at, side="right")) - 1, 0)
        parts.setdefault(number, []).append(event.block)
    return parts


def schemes_of(events: Iterable[Event]) -> tuple[tuple[str, str], ...]:
    """Which events there are: scheme_id_uri and value, each once, in their order."""
    return tuple(islice(dict.fromkeys(event.scheme for event in events), MOST_SCHEMES))
