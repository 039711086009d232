"""What an index inside a file tells, and the approximate tables that follow from it.

A segment index (sidx) speaks of one stream in its own timescale and in presentation time, that is
after the edit list (ISO/IEC 14496-12, 8.16.3). Tables hold composition times: the track's shift
is taken off again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fragdex.box_header import read_header
from fragdex.fragments.findings import Finding, Findings
from fragdex.fragments.table import NULL, FragmentFlags, FragmentTable, Int64, SyncTable
from fragdex.fragments.track_info import Movie

__all__ = ["SegmentMap", "Stream", "Tables", "approximate", "rescaled", "tables"]

Tables = tuple[FragmentTable, SyncTable]

LEADS = (b"moof", b"styp", b"emsg", b"prft", b"sidx")
"""What a fragment begins with, or what introduces it."""
FAR = 1 << 62
"""Times from here on are no claims but damage; sums and differences of two still fit."""


@dataclass(frozen=True, slots=True, eq=False)
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

    >>> nothing = np.zeros(0, np.int64)
    >>> Stream(1, 1000, *[nothing] * 6).stop
    0
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
        """Byte behind the last subsegment; 0 where there is none."""
        return int((self.offset + self.size).max()) if len(self) else 0


@dataclass(frozen=True, slots=True)
class SegmentMap:
    """What the sidx boxes of a file say, merged.

    Attributes:
        streams: reference_ID → its subsegments, in the order met.
        covered_until: byte behind the last subsegment that follows without a gap; the rest of the
            file is to be walked from here. 0 where nothing is referenced.
        findings: what was odd.

    >>> SegmentMap({}, 0, ()).doubts()
    (Finding(code='sidx-empty', message='the sidx names no subsegment', offset=None, path='sidx',
     track=None, count=1),)
    """

    streams: Mapping[int, Stream]
    covered_until: int
    findings: tuple[Finding, ...]

    def doubts(
        self, *, size: int | None = None, heads: Mapping[int, bytes] | None = None
    ) -> tuple[Finding, ...]:
        """Reasons not to believe the map; empty where there is none.

        Args:
            size: bytes of the file; None: unknown.
            heads: file position → at least 8 bytes from there, as far as they are at hand; where a
                reference starts there, a box that can begin a subsegment must stand there.
        """
        found = Findings()
        if not any(len(stream) for stream in self.streams.values()):
            found.add("sidx-empty", "the sidx names no subsegment", path="sidx")
        for number, stream in self.streams.items():
            _doubt(found, number, stream, size, heads or {})
        return found.all()


def _doubt(
    found: Findings, number: int, stream: Stream, size: int | None, heads: Mapping[int, bytes]
) -> None:
    def add(code: str, message: str, at: int | None = None) -> None:
        found.add(code, message, offset=at, path="sidx", track=number)

    if not len(stream):
        return
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

    >>> rescaled(np.array([1, 2, NULL]), 2, 3).tolist() == [1, 1, NULL]
    True
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
        flags: of every row.

    >>> rows = np.array([0, 10])
    >>> fragments, sync = approximate(
    ...     offset=rows, size=rows, moof=None, start=rows, stop=rows + 10, access=rows
    ... )
    >>> bool(fragments.sample_count[0] == NULL), sync.fragment.tolist()
    (True, [0, 1])
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
        sync=unknown,
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
        findings: where to note what was guessed.

    >>> tables(SegmentMap({}, 0, ()), Movie(1000, 0, True, ()))
    {}
    """
    findings = findings if findings is not None else Findings()
    streams = {number: stream for number, stream in segments.streams.items() if len(stream)}
    if not streams:
        return {}
    if not movie.tracks:
        return {n: _table(s, s.timescale, Fraction(0)) for n, s in streams.items()}
    streams, lead = _named(streams, movie, findings)
    found = {}
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
        found[info.id] = _table(stream, timescale, info.shift(movie.timescale), flags)
    return found


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
