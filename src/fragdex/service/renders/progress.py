"""How far a render is, as events that published clients know.

`size` comes first, and only once it is known; `completion` counts the frames that were finished
since the last one, so that their sum ends at `size` whoever connects when, and whatever was done
twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

import sqlalchemy as sa

from fragdex.service.house import House
from fragdex.service.records.tables import render_parts
from fragdex.service.renders.model import RenderStatus
from fragdex.service.renders.records import need_row
from fragdex.service.unprocessed.model import Problem
from fragdex.service.web.events import Event, changes

__all__ = ["look", "whole"]

_ENDED = ("complete", "error")


def look(house: House, tenant_id: str, render_id: str) -> Event:
    """Where a render stands: `progress` with `size` and `done`, or how it ended.

    Raises:
        RecordNotFound: this tenant has none of this id.
    """
    done = sa.select(sa.func.sum(render_parts.c.done)).where(render_parts.c.render_id == render_id)
    with house.database.read() as connection:
        row = need_row(connection, tenant_id, render_id)
        count = int(connection.scalar(done) or 0)
    state = {"size": row.frames, "done": count}
    if row.status == RenderStatus.COMPLETE:
        return "complete", state
    if row.status in (RenderStatus.FAILED, RenderStatus.CANCELLED):
        problem = Problem.of(row.problem)
        return "error", {**state, "problem": {} if problem is None else problem.model_dump()}
    return "progress", state


async def whole(look: Callable[[], Event]) -> AsyncIterator[Event]:
    """What `look` tells from now to the end, in the words of the interface."""
    size: int | None = None
    sent = 0
    # closed with this one, so that nobody looks on for a client that went away
    async with aclosing(changes(look)) as states:  # type: ignore[type-var]
        async for name, state in states:
            if size is None and (state["size"] is not None or name in _ENDED):
                size = state["size"] or 0
                yield "size", {"size": size}
            done = size if name == "complete" else min(state["done"], size or 0)
            if size is not None and done is not None and done > sent:
                yield "completion", {"count": done - sent}
                sent = done
            if name == "complete":
                yield "complete", {}
            elif name == "error":
                yield "error", state["problem"]
