"""The JSON form of an index that players and services exchange: media segments of each track.

An object keyed by track id. Of each track it tells what a player needs to set up a buffer, where
the initialization segment lies, and the segments: runs of whole fragments that begin at a sync
sample. Times are ticks of the track's timescale on the presentation timeline (the edit list is
applied): what this form calls `cts` is a presentation time. Bytes count from the start of the file
that holds the track.

Only video and audio tracks stand in this form; others are left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, InexactIndex
from fragdex.formats.sample_csv import whole_ticks
from fragdex.formats.subsegments import init_place
from fragdex.formats.wire_reading import WireIndex, read, read_pieces
from fragdex.fragments.table import NULL, FragmentTable
from fragdex.record import record
from fragdex.seeking.model import Index, Track
from fragdex.seeking.times import NO_SHIFT, TimeLike, exact_time, floor_ticks

__all__ = [
    "SEGMENT_DURATION",
    "WireIndex",
    "WireSegments",
    "read",
    "read_pieces",
    "segments",
    "write",
]

SEGMENT_DURATION = 2
"""How long a segment lasts at least: shorter ones cost players more requests than they save."""

NOTICEABLE_MS = 10
"""Presentation times this close to 0 count as 0: less than half a frame of usual video."""

KINDS = ("video", "audio")

Int64 = npt.NDArray[np.int64]


@record(frozen=True, slots=True, eq=False)
class WireSegments:
    """The segments of one track as int64 columns of equal length.

    Attributes:
        row: first row of the fragment table (inclusive); a segment reaches to the next one's.
        cts: presentation time in ticks of its first sample in presentation order.
        dts: presentation-timeline decode time in ticks of its first sample in decode order.
        duration: ticks to the next segment's cts; the last one's reaches to the end of the track.
        offset, size: the smallest range of bytes that holds its fragments.
    """

    row: Int64
    cts: Int64
    dts: Int64
    duration: Int64
    offset: Int64
    size: Int64


def segments(track: Track, min_ticks: int, *, size: int | None = None) -> WireSegments:
    """The segments of a track: each begins at a row whose first sample is sync.

    Together they hold every row of the fragment table that has samples. Rows before the first sync
    sample, which nothing can decode, belong to the first segment; the rest at the end and
    shorter than `min_ticks` to the last.

    Args:
        min_ticks: least duration of a segment, in ticks of the track's timescale.
        size: bytes of the file, or None; rows that reach past it (the file was cut off) are left
            out.

    Raises:
        InexactIndex: times or sync samples of the fragments are not known.
    """
    table = track.fragments
    usable = table.sample_count != 0
    if size is not None:
        usable &= table.offset + table.size <= size
    rows = np.flatnonzero(usable)
    table = table.rows(rows)
    if not len(table):
        return WireSegments(*[np.zeros(0, np.int64)] * 6)
    for name in ("first_sync", "dts", "cts_min", "cts_end"):
        if (getattr(table, name) == NULL).any():
            raise InexactIndex(
                f"the column {name} of track {track.id} is not known for every fragment",
                advice="build the index with exact=True",
            )
    shift = whole_ticks(track.shift)
    starts = _starts(table, min_ticks)
    cts = np.minimum.reduceat(table.cts_min, starts) + shift
    end = int(table.cts_end.max()) + shift
    offset = np.minimum.reduceat(table.offset, starts)
    return WireSegments(
        rows[starts],
        cts,
        table.dts[starts] + shift,
        np.diff(cts, append=end),
        offset,
        np.maximum.reduceat(table.offset + table.size, starts) - offset,
    )


def _starts(table: FragmentTable, min_ticks: int) -> Int64:
    """Rows that begin a segment.

    What follows a cut may be shown before the row at the cut, so that the least time from a row on
    counts. Where it rises between two cuts, it stands between them: segments are in order of time
    and as long as the difference says.
    """
    may_start = np.flatnonzero(table.first_sync == 0)
    least = np.minimum.accumulate(table.cts_min[::-1])[::-1]
    end = int(table.cts_end.max())
    starts, last = [0], int(least[0])
    for row, time in zip(may_start.tolist(), least[may_start].tolist(), strict=True):
        if not row or time - last < min_ticks or end - time < min_ticks:
            continue
        # Segments of no duration meet at one time, which must be theirs and not a later one's.
        if time > last or table.cts_min[starts[-1] : row].min() == last:
            starts.append(row)
            last = time
    return np.array(starts, np.int64)


def write(
    index: Index,
    *,
    segment_duration: TimeLike | None = None,
    period: int | None = None,
    unknown: Mapping[str, Any] | None = None,
) -> bytes:
    """The JSON form, as ASCII text.

    Args:
        segment_duration: a segment lasts at least so long; None: 2 s, and 0 for an index that was
            read from this form, so that its segments stay as they are.
        period: number of the period to write; needed where a track id stands in several.
        unknown: more keys for the object itself, next to the tracks.

    Keys that `read` met and did not know are written again.

    Raises:
        InexactIndex: no track has a type and a timescale (media segments without a moov), or the
            index does not know the times and sync samples of its fragments.
        BuildError: a track id is in several periods.
    """
    if segment_duration is None:
        segment_duration = 0 if isinstance(index, WireIndex) else SEGMENT_DURATION
    kept = index.kept if isinstance(index, WireIndex) else {}
    document: dict[str, Any] = {}
    left_out = 0
    for governing in index.periods:
        if period is not None and governing.number != period:
            continue
        init = init_place(governing)
        for track in governing.tracks:
            if track.kind not in KINDS or not track.timescale:
                left_out += track.kind == "other"
                continue
            if str(track.id) in document:
                raise BuildError(
                    f"track {track.id} is in several periods, and this form has no periods",
                    advice="take one: period=0, index.of_period(0), or --period 0",
                )
            document[str(track.id)] = _track(
                track, init, index.file.size, segment_duration, kept.get(str(track.id), {})
            )
    if left_out and not document:
        raise InexactIndex(
            "no track has a known type and timescale", advice="give the init segment with init="
        )
    more = dict(index.unknown) if isinstance(index, WireIndex) else {}
    document = more | dict(unknown or {}) | document
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode("ascii")


def _track(
    track: Track,
    init: ByteRange,
    size: int | None,
    segment_duration: TimeLike,
    kept: Mapping[str, Any],
) -> dict[str, Any]:
    info = track.info
    min_ticks = -floor_ticks(-exact_time(segment_duration), info.timescale, NO_SHIFT)  # rounded up
    listed = segments(track, int(min_ticks), size=size)
    document: dict[str, Any] = {"track": info.id, "type": info.kind}
    if info.kind == "video":
        document |= {"width": info.width, "height": info.height}
    else:
        document |= {
            "channel_count": info.channel_count,
            "sample_rate": info.sample_rate,
            "sample_size": info.sample_size,
        }
    first = int(listed.cts[0]) if len(listed.cts) else 0
    document |= {
        "timescale": info.timescale,
        "sample_count": track.sample_count,
        "codec": info.codec,
        "duration": int(listed.duration.sum()),
    }
    start_ms = Fraction(first * 1000, info.timescale)
    if abs(start_ms) > NOTICEABLE_MS:
        # Whole ones as an integer, others to the microsecond.
        is_whole = start_ms.denominator == 1
        document["startTimeOffsetMs"] = int(start_ms) if is_whole else round(float(start_ms), 3)
    document["initSegment"] = {"offset": init.start, "size": init.size}
    document["initSegment"] |= kept.get("initSegment", {})
    columns = (listed.cts, listed.dts, listed.duration, listed.offset, listed.size)
    names = ("cts", "dts", "duration", "offset", "size")
    document["segments"] = [
        dict(zip(names, values, strict=True))
        for values in zip(*(column.tolist() for column in columns), strict=True)
    ]
    # What reading met and did not know is put back; what the index knows better stays.
    numbers = {row: number for number, row in enumerate(listed.row.tolist())}
    for row, more in kept.get("segments", {}).items():
        if row in numbers:
            document["segments"][numbers[row]] |= more
    for key, value in kept.items():
        # Segments do not tell how many samples they hold; an index read from them cannot know.
        if document.get(key) is None or key == "sample_count":
            document[key] = value
    return document
