"""Which bytes a moment of a track needs."""

from __future__ import annotations

from fractions import Fraction

from fragdex import NULL
from fragdex.formats.sample_csv import whole_ticks
from fragdex.service.errors import InvalidRequest
from fragdex.service.house import House
from fragdex.service.isobmff.model import Place, SeekAnswer
from fragdex.service.isobmff.opened import chosen_track, opened
from fragdex.service.isobmff.operations import index_keys

__all__ = ["seek"]


def seek(
    house: House,
    tenant_id: str,
    file_id: str,
    track_id: int | None,
    time_ms: float,
    end_ms: float | None = None,
) -> SeekAnswer:
    """Where decoding starts for a moment, and, with `end_ms`, all bytes until before that.

    Raises:
        RecordNotFound: this tenant has no such file, or it has no index yet.
        TrackNotFound: it has no such track.
        NoSyncSample: decoding of the track can start nowhere.
        InvalidRequest: the end lies before the start.
    """
    open_ = opened(house, index_keys(house, tenant_id, file_id))
    index = open_.index
    track = chosen_track(index, track_id)
    start = Fraction(time_ms) / 1000
    hit = track.seek(start)
    shift = whole_ticks(hit.shift)
    duration = int(track.fragments.duration[hit.fragment])
    init = open_.inits[track.period]
    answer = SeekAnswer(
        track=hit.track,
        fragment=hit.fragment,
        cts=hit.cts + shift,
        dts=None if hit.dts is None else hit.dts + shift,
        duration=None if duration == NULL else duration,
        timescale=hit.timescale,
        time_ms=round(float(hit.time.exact * 1000), 3),
        offset=hit.offset,
        size=hit.size,
        init=Place(offset=init.start, size=init.size),
    )
    if end_ms is not None:
        if end_ms < time_ms:
            raise InvalidRequest(
                "the span ends before it starts", pointer="end_ms", expected=f"at least {time_ms}"
            )
        span = index.ranges(start, Fraction(end_ms) / 1000, tracks=[track.id])
        answer.ranges = [Place(offset=part.start, size=part.size) for part in span.media]
    return answer
