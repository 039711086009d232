"""What a render comes to: its size, its duration, its parts; asked of the page where it is open."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex.errors import EngineUnavailable, PageFailed
from fragdex.rendering import seams
from fragdex.rendering.browser.model import Notes, PageFacts
from fragdex.rendering.browser.timing import View
from fragdex.rendering.plan import SlicePlan, frames_of, plan, settled
from fragdex.rendering.recipe import browser_mark, recipe
from fragdex.service.context import ServiceContext
from fragdex.service.records import deletion
from fragdex.service.records.tables import render_parts, renders
from fragdex.service.renders import slice_cache
from fragdex.service.renders.records import OPEN, wanted_of
from fragdex.service.renders.request import DEFAULT_SLICE_MS, need_budget
from fragdex.service.renders.workspaces import RenderWorkspace, Workspaces

LEAST_FRAMES: Final = 30
"""Of a slice, but the last."""

NO_DURATION = (
    "the page does not say how long it is: set duration_ms, or `window.fragdex.duration` in the "
    "page, or let it have an animation or a video that ends"
)


def part(
    context: ServiceContext, row: Row[Any], workspace: RenderWorkspace, check: Callable[[], None]
) -> SlicePlan:
    """Part a render into slices, and write them down; once, whoever runs it again finds them.

    Raises:
        PageFailed: it says nothing of its duration, or too much; and as `ChildPool.look`.
        TooLarge, InvalidRequest: it is larger or longer than a render may be.
    """

    def look(view: View) -> PageFacts:
        with context.jobs.seats.taken(row.tenant_id, check):
            return context.part(Workspaces).pool.look(workspace, view, check=check)

    if row.frames is None:
        new = wanted_of(row)
        wanted = new.to_spec
        view, duration = settled(wanted, workspace.limits, look)
        found = SlicePlan(view, (0, 1))
        if new.is_video:
            duration = _allowed(context, duration)
            slice_ms = max(new.work_slice_ms or DEFAULT_SLICE_MS, _least_ms(view))
            frames = frames_of(wanted, duration)
            if wanted.film.is_sound:
                # to pass by is what a slice after it would have to do as well
                found = SlicePlan(view, (frames.start, frames.stop))
            else:
                found = plan(view, frames, slice_ms=slice_ms)
                # what the request left open the page has decided
                need_budget(context.settings, math.prod(view.pixels), found.frames)
            if _was_drawn_alone(context, row, workspace, found):
                found = SlicePlan(view, (found.borders[0], found.borders[-1]))
        _write(context, row.id, found, duration)
    return stored(context, row.id)


def stored(context: ServiceContext, render_id: str) -> SlicePlan:
    """How a render is parted now."""
    with context.database.read() as connection:
        return _stored(connection, render_id)


def _was_drawn_alone(
    context: ServiceContext, row: Row[Any], workspace: RenderWorkspace, found: SlicePlan
) -> bool:
    """Whether another render of this page found that one browser has to draw it, and did so."""
    try:
        mark = browser_mark()
    except EngineUnavailable:
        # said where one is needed, which may be another machine
        return False
    frames = range(found.borders[0], found.borders[-1])
    own = recipe(found.view, frames, wanted_of(row).to_spec, mark)
    kept = slice_cache.find(context, row.tenant_id, own, workspace)
    return kept is not None and bool(seams.notes_of(kept.made["notes"]))


def draw_alone(context: ServiceContext, render_id: str, note: str) -> SlicePlan:
    """Have a render drawn by one browser: its slices become one, and nobody finds them again.

    Once: who comes later, or again, finds it so.

    Args:
        note: why, for its record.
    """
    mine, own = renders.c.id == render_id, render_parts.c.render_id == render_id
    query = sa.select(renders.c.frames, renders.c.notes).where(mine, OPEN).with_for_update()
    with context.database.write() as connection:
        row = connection.execute(query).one_or_none()
        parts = connection.execute(sa.select(render_parts).where(own)).all()
        if row is not None and not seams.notes_of(row.notes):
            for one in parts:
                # what begins with the film was drawn from the beginning
                if one.first and one.slice_id is not None:
                    deletion.remove(connection, slice_cache.FAMILY, one.slice_id)
            told = Notes.of_json(row.notes or {})
            told.say("browser", note)
            spent = sum(work_seconds(one.seconds) for one in parts)
            cost = sum((one.seconds or {}).get("processor", 0.0) for one in parts)
            seconds = {"discarded": round(spent, 3)}
            if cost:
                seconds["processor"] = round(cost, 3)
            values = {"notes": told.as_json(), "seconds": seconds}
            connection.execute(renders.update().where(mine).values(**values))
            connection.execute(render_parts.delete().where(own))
            whole = range(min(one.first for one in parts), max(one.stop for one in parts))
            connection.execute(render_parts.insert(), _rows(render_id, [whole]))
        return _stored(connection, render_id)


def work_seconds(seconds: Mapping[str, float] | None) -> float:
    """What a slice cost a worker: the encoder works beside the others, on the processors all do."""
    beside = ("encode", "processor")
    return sum(float(value) for name, value in (seconds or {}).items() if name not in beside)


def view_of(row: Row[Any]) -> View:
    """How a parted render is seen."""
    return replace(wanted_of(row).to_spec, width=row.width, height=row.height).view()


def _allowed(context: ServiceContext, duration: int | None) -> int:
    if not duration:
        raise PageFailed(NO_DURATION)
    limit = context.settings.max_render_ms
    if duration > limit:
        raise PageFailed(
            f"the page is {duration} ms long, more than the {limit} ms that a render may have: "
            "set duration_ms"
        )
    return duration


def _least_ms(view: View) -> int:
    """The shortest slice: an hour at a frame a second is no thousand slices of four frames."""
    return math.ceil(LEAST_FRAMES * 1000 / view.fps)


def _write(
    context: ServiceContext, render_id: str, found: SlicePlan, duration_ms: int | None
) -> None:
    values = {
        "width": found.view.width,
        "height": found.view.height,
        "duration_ms": duration_ms,
        "frames": found.frames,
    }
    # Of two runs, the one that came first has parted it.
    first = (renders.c.id == render_id) & renders.c.frames.is_(None)
    with context.database.write() as connection:
        if connection.execute(renders.update().where(first).values(**values)).rowcount:
            connection.execute(render_parts.insert(), _rows(render_id, found.slices))


def _rows(render_id: str, slices: Sequence[range]) -> list[dict[str, Any]]:
    return [
        {
            "render_id": render_id,
            "number": number,
            "first": one.start,
            "stop": one.stop,
            "done": 0,
            "attempts": 0,
            "reused": False,
        }
        for number, one in enumerate(slices)
    ]


def _stored(connection: Connection, render_id: str) -> SlicePlan:
    row = connection.execute(sa.select(renders).where(renders.c.id == render_id)).one()
    part = render_parts.c
    ends = sa.select(part.first, part.stop).where(part.render_id == render_id)
    parts = connection.execute(ends.order_by(part.number)).all()
    return SlicePlan(view_of(row), (*(one.first for one in parts), parts[-1].stop))
