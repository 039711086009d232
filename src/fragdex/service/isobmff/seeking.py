"""Which bytes a moment of a track needs."""

from __future__ import annotations

from fractions import Fraction

from fragdex import NULL, FragmentIndex, TrackIndex
from fragdex.formats.sample_csv import whole_ticks
from fragdex.service.errors import InvalidRequest
from fragdex.service.house import House
from fragdex.service.isobmff.model import Place, SeekAnswer
from fragdex.service.isobmff.opened import Opened, at_hand, chosen_track, opened
from fragdex.service.isobmff.operations import glance_at_keys, index_keys

__all__ = ["glance", "seek"]


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
    answer, track, index = _answer(
        opened(house, index_keys(house, tenant_id, file_id)), track_id, time_ms
    )
    if end_ms is not None:
        if end_ms < time_ms:
            raise InvalidRequest(
                "the span ends before it starts", pointer="end_ms", expected=f"at least {time_ms}"
            )
        start, stop = Fraction(time_ms) / 1000, Fraction(end_ms) / 1000
        span = index.ranges(start, stop, tracks=[track.id])
        answer.ranges = [Place(offset=part.start, size=part.size) for part in span.media]
    return answer


def glance(
    house: House, tenant_id: str, file_id: str, track_id: int | None, time_ms: float
) -> SeekAnswer | None:
    """`seek` without waiting, where the index is open already; None: ask it."""
    keys = glance_at_keys(house, tenant_id, file_id)
    ready = None if keys is None else at_hand(keys)
    return None if ready is None else _answer(ready, track_id, time_ms)[0]


def _answer(
    ready: Opened, track_id: int | None, time_ms: float
) -> tuple[SeekAnswer, TrackIndex, FragmentIndex]:
    track = chosen_track(ready.index, track_id)
    hit = track.seek(Fraction(time_ms) / 1000)
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
    return answer, track, ready.index
