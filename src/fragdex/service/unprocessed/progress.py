"""How far the work on a record is, as events that published clients know."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

from fragdex.service.unprocessed.model import ProcessRecord, ProcessStatus
from fragdex.service.web.events import LAST, Event, changes

__all__ = ["event_of", "whole"]


def event_of(record: ProcessRecord) -> Event:
    """Where a process stands."""
    if record.problem is not None or record.status is ProcessStatus.FAILED:
        return "error", record.problem.model_dump() if record.problem is not None else {}
    if record.status is ProcessStatus.COMPLETE:
        return "complete", {}
    return "progress", {"progress": record.progress}


async def whole(look: Callable[[], Event]) -> AsyncIterator[Event]:
    """What `look` tells from now to the end; whoever comes late or again sees a whole picture.

    The first event is always a `progress`, and a `progress` of 1 goes before `complete`.
    """
    last: float | None = None
    # closed with this one, so that nobody looks on for a client that went away
    async with aclosing(changes(look)) as events:  # type: ignore[type-var]
        async for name, data in events:
            if name == "complete" and last != 1:
                yield "progress", {"progress": 1}
            elif name == "error" and last is None:
                yield "progress", {"progress": 0}
            elif name not in LAST:
                last = data["progress"]
            yield name, data
