"""How far the work on a record is, as events that published clients know."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, suppress
from typing import Any, Final

import sqlalchemy as sa

from fragdex.service.context import ServiceContext
from fragdex.service.records.tables import processes
from fragdex.service.unprocessed.model import Problem
from fragdex.service.web.events import END, Batch, Event

__all__ = ["look", "whole"]

ALMOST: Final = 0.999
"""What `progress` says of work that is all done, but whose result cannot be had yet."""


def look(context: ServiceContext, tenant_id: str, ids: Sequence[str]) -> dict[str, Event]:
    """Where processes stand, by id."""
    row = processes.c
    columns = (row.id, row.progress, row.problem, row.completed_at, row.failed_at)
    wanted = sa.select(*columns).where(row.tenant_id == tenant_id, row.id.in_(ids))
    with context.database.read() as connection:
        return {one.id: _event_of(one) for one in connection.execute(wanted)}


def _event_of(row: Any) -> Event:
    problem = Problem.of(row.problem)
    if problem is not None or row.failed_at is not None:
        return "error", {} if problem is None else problem.model_dump()
    if row.completed_at is not None:
        return "complete", {}
    return "progress", {"progress": row.progress}


async def whole(states: AsyncIterator[Event], after: str | None = None) -> AsyncIterator[Batch]:
    """What `states` tells, to the end; whoever comes late or again sees a whole picture.

    The first event is always a `progress`. A `progress` of 1 goes out with `complete`, in one
    write, and not before: published clients stop reading there.

    Args:
        after: the id of the last event that the listener has. Ids are the progress so far: what
            is behind it, or as far, is not sent.
    """
    last = -1.0
    with suppress(ValueError):
        last = float(after) if after is not None else last
    if not (math.isfinite(last) and 0 <= last <= 1):
        last = -1.0
    # closed with this one, so that nobody looks on for a client that went away
    async with aclosing(states):  # type: ignore[type-var]
        async for name, data in states:
            if name == "complete":
                yield ("progress", {"progress": 1}, "1"), (name, data, END)
            elif name == "error":
                first: Batch = () if last >= 0 else (("progress", {"progress": 0}, "0"),)
                yield (*first, (name, data, END))
            elif last < (now := min(data["progress"], ALMOST)):
                last = now
                yield ((name, {"progress": now}, f"{now:.9f}"),)
