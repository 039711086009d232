"""At which moments decoding of a track can start, by its pictures and not by their flags.

A stranger's boxes say where pictures are. What reads few bytes is done in a thread; what reads
more, in a process of its own.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from fractions import Fraction

import fragdex
from fragdex import TrackIndex
from fragdex.errors import BudgetExceeded
from fragdex.sandbox.folders import OwnFolder
from fragdex.service.context import ServiceContext
from fragdex.service.indexing.isolated import IN_THREAD, run_isolated
from fragdex.service.isobmff import tracks
from fragdex.service.isobmff.model import IndexKeys
from fragdex.service.isobmff.opened import alone
from fragdex.service.isobmff.true_sync_child import true_time, verified

__all__ = ["verified_time"]


def verified_time(
    context: ServiceContext,
    tenant_id: str,
    file_id: str,
    keys: IndexKeys,
    track: TrackIndex,
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
