"""How far a render is, in frames, as `web.events.counted` tells it."""

from __future__ import annotations

import sqlalchemy as sa

from fragdex.service.house import House
from fragdex.service.records.tables import render_parts
from fragdex.service.renders.model import RenderStatus
from fragdex.service.renders.records import need_row
from fragdex.service.unprocessed.model import Problem
from fragdex.service.web.events import Event

__all__ = ["look"]


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
