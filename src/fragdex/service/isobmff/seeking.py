"""Which bytes a moment of a track needs."""

from __future__ import annotations

from fractions import Fraction

from fragdex import NULL
from fragdex.errors import InvalidRequest
from fragdex.formats.sample_csv import whole_ticks
from fragdex.service.context import ServiceContext
from fragdex.service.isobmff.model import Place, SeekAnswer
from fragdex.service.isobmff.opened import chosen_track, opened
from fragdex.service.isobmff.operations import index_keys
from fragdex.service.isobmff.true_sync import verified_time

__all__ = ["seek"]


def seek(
    context: ServiceContext,
    tenant_id: str,
    file_id: str,
    track_id: int | None,
    time_ms: float,
    end_ms: float | None = None,
    verified: bool = False,
) -> SeekAnswer:
    """Where decoding starts for a moment, and, with `end_ms`, all bytes until before that.

    Args:
        verified: look at the bytes of the track, and go back to a sample that a decoder can start
            at, whatever its flags say.

    Raises:
        RecordNotFound: this tenant has no such file, or it has no index yet.
        NotReady: with `verified`: the bytes of the track are not here.
        UnverifiedSync: with `verified`: they do not say it.
        Unprocessable, Unavailable: with `verified`: as `run_isolated`.
        TrackNotFound: it has no such track.
        NoSyncSample: decoding of the track can start nowhere.
        InvalidRequest: the end lies before the start.
    """
    keys = index_keys(context, tenant_id, file_id)
    ready = opened(context, keys)
    track = chosen_track(ready.index, track_id)
    time = Fraction(time_ms) / 1000
    if verified:
        time = verified_time(context, tenant_id, file_id, keys, track, time)
    hit = track.seek(time)
    shift = whole_ticks(hit.shift)
    duration = int(track.fragments.duration[hit.fragment])
    init = ready.inits[track.period]
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
        stop = max(time, Fraction(end_ms) / 1000)
        span = ready.index.ranges(time, stop, tracks=[track.id])
        answer.ranges = [Place(offset=part.start, size=part.size) for part in span.media]
    return answer
