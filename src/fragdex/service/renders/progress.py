"""How far a render is, in frames, as `web.events.counted` tells it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from fragdex.service.context import ServiceContext
from fragdex.service.records.tables import render_parts, renders
from fragdex.service.renders.model import RenderStatus
from fragdex.service.unprocessed.model import Problem
from fragdex.service.web.events import Event

__all__ = ["look"]

_RENDER, _PART = renders.c, render_parts.c


def look(context: ServiceContext, tenant_id: str, ids: Sequence[str]) -> dict[str, Event]:
    """Where renders stand, by id: `progress` with `size` and `done`, or how they ended."""
    done = (
        sa.select(_PART.render_id, sa.func.sum(_PART.done).label("done"))
        .where(_PART.render_id.in_(ids))
        .group_by(_PART.render_id)
    )
    columns = (_RENDER.id, _RENDER.status, _RENDER.frames, _RENDER.problem)
    wanted = sa.select(*columns).where(_RENDER.tenant_id == tenant_id, _RENDER.id.in_(ids))
    with context.database.read() as connection:
        rows = connection.execute(wanted).all()
        counts = {one.render_id: int(one.done or 0) for one in connection.execute(done)}
    return {row.id: _event_of(row, counts.get(row.id, 0)) for row in rows}


def _event_of(row: Any, done: int) -> Event:
    state = {"size": row.frames, "done": done}
    if row.status == RenderStatus.COMPLETE:
        return "complete", state
    if row.status in (RenderStatus.FAILED, RenderStatus.CANCELLED):
        problem = Problem.of(row.problem)
        return "error", {**state, "problem": {} if problem is None else problem.model_dump()}
    return "progress", state
