"""What a render comes to: its size, its duration, its parts; asked of the page where it is open."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex.service.context import ServiceContext
from fragdex.service.errors import PageFailed
from fragdex.service.records.tables import render_parts, renders
from fragdex.service.renders.browser.model import PageFacts
from fragdex.service.renders.browser.timing import DEFAULT_HEIGHT, DEFAULT_WIDTH, View
from fragdex.service.renders.plan import plan
from fragdex.service.renders.records import wanted_of
from fragdex.service.renders.request import DEFAULT_SLICE_MS, NewRender, Png, WebP, need_budget
from fragdex.service.renders.running import look
from fragdex.service.renders.workspaces import RenderWorkspace, Workspaces

__all__ = ["Parted", "part", "view_of"]

LEAST_FRAMES: Final = 30
"""Of a slice, but the last."""

NO_DURATION = (
    "the page does not say how long it is: set duration_ms, or `window.fragdex.duration` in the "
    "page, or let it have an animation or a video that ends"
)


@dataclass(frozen=True, slots=True)
class Parted:
    """A render in parts: how it is seen, and the frames of each, `range`s in order."""

    view: View
    frames: int
    parts: tuple[range, ...]


def part(
    context: ServiceContext, row: Row[Any], workspace: RenderWorkspace, check: Callable[[], None]
) -> Parted:
    """Part a render into slices, and write them down; once, whoever runs it again finds them.

    Raises:
        PageFailed: it says nothing of its duration, or too much; and as `running.look`.
        TooLarge, InvalidRequest: it is larger or longer than a render may be.
    """
    if row.frames is None:
        wanted = wanted_of(row)
        facts = _facts(context, row.tenant_id, wanted, workspace, check)
        view = _view(wanted, facts)
        workspace.limits.check(view)
        if wanted.is_video:
            duration = _duration(context, wanted, facts)
            slice_ms = max(wanted.work_slice_ms or DEFAULT_SLICE_MS, _least_ms(view))
            found = plan(view, duration, slice_ms=slice_ms)
            # what the request left open the page has decided
            need_budget(context.settings, view.width * view.height, found.frames)
            _write(context, row.id, view, duration, found.frames, found.slices)
        else:
            _write(context, row.id, view, None, 1, (range(1),))
    with context.database.read() as connection:
        return _stored(connection, row.id)


def view_of(row: Row[Any]) -> View:
    """How a parted render is seen."""
    wanted = wanted_of(row)
    output = wanted.wanted
    clear = isinstance(output, Png | WebP) and output.transparency
    return View(row.width, row.height, wanted.rate, clear)


def _facts(
    context: ServiceContext,
    tenant_id: str,
    wanted: NewRender,
    workspace: RenderWorkspace,
    check: Callable[[], None],
) -> PageFacts | None:
    """What the page says, where it has to be asked."""
    needs = wanted.width is None or wanted.height is None
    if not needs and (wanted.duration_ms is not None or not wanted.is_video):
        return None
    view = _view(wanted, None)
    workspace.limits.check(view)
    with context.jobs.seats.taken(tenant_id, check):
        return look(
            workspace.site, view, outside=workspace.asked, limits=workspace.limits, check=check,
            warm=context.part(Workspaces).warm, key=workspace.key,
        )  # fmt: skip


def _view(wanted: NewRender, facts: PageFacts | None) -> View:
    width = wanted.width or (facts.width if facts else None) or DEFAULT_WIDTH
    height = wanted.height or (facts.height if facts else None) or DEFAULT_HEIGHT
    if wanted.is_video:
        # H.264 has even sides: a pixel more rather than one less
        width, height = width + width % 2, height + height % 2
    output = wanted.wanted
    clear = isinstance(output, Png | WebP) and output.transparency
    return View(max(width, 2), max(height, 2), wanted.rate, clear)


def _duration(context: ServiceContext, wanted: NewRender, facts: PageFacts | None) -> int:
    duration = wanted.duration_ms or (facts.duration_ms if facts else None)
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
    context: ServiceContext, render_id: str, view: View, duration_ms: int | None, frames: int,
    slices: tuple[range, ...],
) -> None:  # fmt: skip
    values = {
        "width": view.width,
        "height": view.height,
        "duration_ms": duration_ms,
        "frames": frames,
    }
    # Of two runs, the one that came first has parted it.
    first = (renders.c.id == render_id) & renders.c.frames.is_(None)
    rows = [
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
    with context.database.write() as connection:
        if connection.execute(renders.update().where(first).values(**values)).rowcount:
            connection.execute(render_parts.insert(), rows)


def _stored(connection: Connection, render_id: str) -> Parted:
    row = connection.execute(sa.select(renders).where(renders.c.id == render_id)).one()
    parts = connection.execute(
        sa.select(render_parts.c.first, render_parts.c.stop)
        .where(render_parts.c.render_id == render_id)
        .order_by(render_parts.c.number)
    ).all()
    return Parted(view_of(row), row.frames, tuple(range(*one) for one in parts))
