"""Writing segment indexes: sidx boxes from an index (ISO/IEC 14496-12, 8.16.3).

One reference a fragment of the reference stream. Times are presentation times, after the edit
list; what the edit list hides before 0 is not counted. A sidx has room for 65,535 references:
more of them go into a hierarchy, one sidx that points to others directly after it.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from fragdex.boxes import Box, build, make_box
from fragdex.errors import BuildError
from fragdex.formats.subsegments import Subsegments, period_of, reference_track, subsegments
from fragdex.fragments.table import NULL
from fragdex.seeking.model import Index
from fragdex.seeking.times import NO_SHIFT, TimeLike, exact_time, floor_ticks

MAX_REFERENCES = 65535
"""reference_count has 16 bits."""
CLOSED, OPEN = 1, 3
"""SAP types (Annex I): nothing is shown before the access point, or there may be something."""
MAX_DELTA = (1 << 28) - 1


def write(
    index: Index,
    *,
    track: int | None = None,
    period: int | None = None,
    first_offset: int = 0,
    segment_duration: TimeLike = 0,
) -> bytes:
    """The sidx boxes, to stand `first_offset` bytes before the first fragment.

    Args:
        track: the reference stream; None: the first video track, or else the first audio track.
        period: number of the period; needed where there are several.
        first_offset: bytes between the boxes and the first fragment.
        segment_duration: join fragments until a reference lasts so long; then each begins with a
            sync sample.

    Raises:
        BuildError: there are no movie fragments, or one of 2 GiB or more, or of a duration that
            does not fit in 32 bits.
        InexactIndex: times of fragments are not known.
    """
    governing = period_of(index, period)
    chosen = reference_track(governing, track)
    found_segments = subsegments(
        governing,
        chosen.id,
        min_ticks=floor_ticks(segment_duration, chosen.timescale, NO_SHIFT),
        at_sync=exact_time(segment_duration) > 0,
    )
    return build(boxes(found_segments, chosen.id, chosen.timescale, first_offset))


def boxes(
    segments: Subsegments, reference_id: int, timescale: int, first_offset: int = 0
) -> tuple[Box, ...]:
    """The sidx boxes of stretches that follow each other: one, or a root and its children.

    Raises:
        BuildError: a stretch is too large or too long.
    """
    rows = _rows(segments)
    starts = np.maximum(segments.time, 0)
    n = len(segments)
    if n <= MAX_REFERENCES:
        return (_sidx(reference_id, timescale, int(starts[0]), first_offset, rows),)
    lasts = np.append(0, np.cumsum(rows["subsegment_duration"].astype(np.int64)))
    parts = -(-n // MAX_REFERENCES)
    edges = [n * part // parts for part in range(parts + 1)]
    # A root's reference to a day of children lasts longer than 32 bits can say.
    while parts < min(n, MAX_REFERENCES) and (np.diff(lasts[edges]) >> 32).any():
        parts = min(2 * parts, n, MAX_REFERENCES)
        edges = [n * part // parts for part in range(parts + 1)]
    sizes = [int(rows["referenced_size"][a:b].sum()) for a, b in pairwise(edges)]
    children: list[Box] = []
    # From the back: how far a child lies before its media depends on the children after it.
    behind = first_offset
    media = sum(sizes)
    for part in range(parts - 1, -1, -1):
        low, high = edges[part], edges[part + 1]
        media -= sizes[part]
        child = _sidx(reference_id, timescale, int(starts[low]), behind + media, rows[low:high])
        children.insert(0, child)
        behind += len(build(child))
    top = np.zeros(parts, rows.dtype)
    for part, child in enumerate(children):
        low, high = edges[part], edges[part + 1]
        duration = int(lasts[high] - lasts[low])
        if duration >> 32:
            raise _too_long(duration)
        top[part] = rows[low]
        top["reference_type"][part] = 1
        top["referenced_size"][part] = len(build(child))
        top["subsegment_duration"][part] = duration
    return (_sidx(reference_id, timescale, int(starts[0]), 0, top), *children)


def _sidx(reference_id: int, timescale: int, time: int, first_offset: int, rows: object) -> Box:
    return make_box(
        "sidx",
        version=1 if max(time, first_offset) >> 32 else 0,
        reference_ID=reference_id,
        timescale=timescale,
        earliest_presentation_time=time,
        first_offset=first_offset,
        references=rows,
    )


_ROW = np.dtype(
    [
        (name, ">u4")
        for name in (
            "reference_type",
            "referenced_size",
            "subsegment_duration",
            "starts_with_SAP",
            "SAP_type",
            "SAP_delta_time",
        )
    ]
)


def _rows(segments: Subsegments) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """The references, with nothing before presentation time 0 counted."""
    if (segments.size >> 31).any():
        largest = int(segments.size.argmax())
        raise BuildError(
            "a fragment is too large for a sidx",
            offset=int(segments.offset[largest]),
            expected="less than 2 GiB",
            found=int(segments.size[largest]),
        )
    start = np.maximum(segments.time, 0)
    duration = np.maximum(segments.time + segments.duration, 0) - start
    if (duration >> 32).any():
        raise _too_long(int(duration.max()))
    delta = np.where(segments.access == NULL, -1, np.maximum(segments.access, 0) - start)
    known = (delta >= 0) & (delta <= MAX_DELTA)
    closed = known & (delta == 0) & (segments.starts != 0)
    rows = np.zeros(len(segments), _ROW)
    rows["referenced_size"] = segments.size
    rows["subsegment_duration"] = duration
    rows["starts_with_SAP"] = np.where(known, segments.starts, 0)
    rows["SAP_type"] = np.where(known, np.where(closed, CLOSED, OPEN), 0)
    rows["SAP_delta_time"] = np.where(known, delta, 0)
    return rows


def _too_long(duration: int) -> BuildError:
    return BuildError(
        "a reference lasts too long for a sidx", expected="less than 2^32 ticks", found=duration
    )
