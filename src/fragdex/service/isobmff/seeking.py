"""Which bytes a moment of a track needs, by its index; or, verified, by the pictures themselves.

A stranger's boxes say where pictures are. What reads few bytes is done in a thread; what reads
more, in a process of its own.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from fractions import Fraction

import fragdex
from fragdex import NULL, Track
from fragdex.errors import BudgetExceeded, InvalidRequest
from fragdex.formats.sample_csv import whole_ticks
from fragdex.sandbox.folders import OwnFolder
from fragdex.service.context import ServiceContext
from fragdex.service.indexing.child import true_time, verified
from fragdex.service.indexing.isolated import IN_THREAD, run_isolated
from fragdex.service.isobmff import tracks
from fragdex.service.isobmff.model import IndexKeys, Place, SeekAnswer
from fragdex.service.isobmff.opened import alone, chosen_track, opened
from fragdex.service.isobmff.operations import index_keys


def verified_time(
    context: ServiceContext,
    tenant_id: str,
    file_id: str,
    keys: IndexKeys,
    track: Track,
    time: Fraction,
) -> Fraction:
    """The presentation time of the true sync sample for a moment of a track of a file.

    Args:
        keys: of the file's index; `track` is one of it.

    Raises: as `seek` with `verified`.
    """
    blob, apart = tracks.media_of(context, tenant_id, file_id, track.id)
    index = alone(context, keys, track.id, apart)
    # What came as JSON, or is not exact, does not say where samples are.
    known = index.exact and (keys.json is None or track.id in dict(keys.tracks))
    if known or blob.byte_size <= IN_THREAD:
        with suppress(BudgetExceeded), context.store.source(blob.store_key) as source:
            source.max_bytes = IN_THREAD
            index = index if known else fragdex.index(source, exact=True)
            return true_time(index, source, track.id, track.kind, time)
    with ExitStack() as stack:
        lent = []
        if known:
            path = stack.enter_context(OwnFolder()) / "known.fidx"
            index.save(path)
            lent.append(stack.enter_context(path.open("rb")).fileno())
        answer = run_isolated(
            context, tenant_id, blob.store_key, blob.byte_size, verified, lent=lent,
            track=track.id, kind=track.kind, time=str(time),
        )  # fmt: skip
    return Fraction(answer["time"])


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
        time_ms=round(float(hit.time.fraction * 1000), 3),
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
        span = ready.index.span(time, stop, tracks=[track.id])
        answer.ranges = [Place(offset=part.start, size=part.size) for part in span.media]
    return answer
