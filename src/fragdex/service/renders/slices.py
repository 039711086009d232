"""What a render comes to, its slices, and those that are kept.

Its size, its duration and its parts are asked of the page where it is open. A slice that one render
made, the next one takes where it would make the same.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex.byterange import ByteRange
from fragdex.errors import EngineUnavailable, PageFailed, Unavailable
from fragdex.rendering.browser.model import Notes, PageFacts, PageView
from fragdex.rendering.messages import SliceMade
from fragdex.rendering.plan import SlicePlan, one_browser_notes, plan
from fragdex.rendering.recipe import browser_mark, recipe
from fragdex.rendering.spec import Settled, frames_of, settled
from fragdex.service.context import ServiceContext
from fragdex.service.records import blobs, deletion
from fragdex.service.records.identifiers import instant, new_id
from fragdex.service.records.tables import render_parts, render_slices, renders
from fragdex.service.renders.model import DEFAULT_SLICE_MS, validate_budget
from fragdex.service.renders.records import OPEN, wanted_of
from fragdex.service.renders.workspaces import RenderWorkspace, Workspaces

FAMILY: Final = "render_slices"
_LOOKED_AT: Final = 50
_PIECE: Final = 1 << 20
_SLICE = render_slices.c


def find(
    context: ServiceContext, tenant_id: str, recipe: bytes, workspace: RenderWorkspace
) -> Row[Any] | None:
    """A slice of this recipe whose page reads the same here; it is kept a while longer."""
    mine = (_SLICE.tenant_id == tenant_id) & (_SLICE.recipe == recipe)
    query = sa.select(render_slices).where(mine).order_by(_SLICE.id.desc()).limit(_LOOKED_AT)
    rows = context.database.all(query)
    for row in rows:
        if workspace.reads_the_same(row.reads["site"], row.reads["own"]):
            with context.database.write() as connection:
                longer = render_slices.update().where(_SLICE.id == row.id)
                if connection.execute(longer.values(expires_at=_expiry(context))).rowcount:
                    return row
    return None


def is_cached(connection: Connection, slice_id: str) -> bool:
    """Whether a slice is kept still."""
    return connection.scalar(sa.select(_SLICE.id).where(_SLICE.id == slice_id)) is not None


def missing_parts(context: ServiceContext, render_id: str) -> bool:
    """Whether slices of a render are not kept, or not any more."""
    part = render_parts.c
    query = (
        sa.select(part.number)
        .outerjoin(render_slices, part.slice_id == _SLICE.id)
        .where(part.render_id == render_id, _SLICE.id.is_(None))
    )
    return context.database.first(query.limit(1)) is not None


def of_render(context: ServiceContext, render_id: str) -> list[Row[Any]]:
    """The kept slices of a render, in order; fewer than it has parts where some are gone."""
    part = render_parts.c
    query = (
        sa.select(render_slices)
        .join(render_parts, part.slice_id == _SLICE.id)
        .where(part.render_id == render_id)
        .order_by(part.number)
    )
    return list(context.database.all(query))


def made_of(row: Row[Any]) -> SliceMade:
    """What is known of a kept slice since it was made."""
    fields = dict(row.made)
    fields.pop("md5")
    return SliceMade.of_json(fields)


def bytes_of(context: ServiceContext, row: Row[Any]) -> blobs.Blob:
    """The bytes of a kept slice.

    Raises:
        Unavailable: they went away.
    """
    with context.database.read() as connection:
        blob = blobs.used_by(connection, row.tenant_id, FAMILY, row.id)
    if blob is None:
        raise Unavailable("a slice of the render is gone", retry_after=1)
    return blob


def keep(
    context: ServiceContext, render: Row[Any], recipe: bytes, slice: SliceMade,
    workspace: RenderWorkspace,
    check: Callable[[], None],
) -> str | None:  # fmt: skip
    """Keep a slice that was made; None where its render is deleted."""
    blob = blobs.write_file(
        context.database, context.store, render.tenant_id, Path(slice.path), check
    )
    slice_id = new_id()
    if workspace.outside.network:
        # found by nobody: another time the network may answer otherwise
        recipe = hashlib.sha256(recipe + slice_id.encode()).digest()
    row = {
        "id": slice_id,
        "tenant_id": render.tenant_id,
        "render_id": render.id,
        "recipe": recipe,
        "reads": {"site": slice.reads, "own": workspace.outside.own.reads},
        "made": {**slice.as_json(), "path": "", "reads": {}, "md5": blob.md5.hex()},
        "created_at": instant(),
        "expires_at": _expiry(context),
    }
    there = sa.select(renders.c.id).where(renders.c.id == render.id).with_for_update(key_share=True)
    with context.database.write() as connection:
        if connection.execute(there).first() is None:
            return None
        connection.execute(render_slices.insert().values(**row))
        digests = (blob.md5, blob.sha256)
        blobs.keep(
            connection, render.tenant_id, *digests, blob.byte_size, FAMILY, slice_id,
            blob.store_key,
        )  # fmt: skip
    return slice_id


def bring(context: ServiceContext, row: Row[Any], path: Path) -> SliceMade:
    """A kept slice as a file of this machine: a link where the store is here, else a copy."""
    key = bytes_of(context, row).store_key
    here = context.store.path(key)
    if here is not None:
        os.symlink(here, path)
    else:
        with path.open("wb") as out:
            out.writelines(context.store.read(key, ByteRange(0, context.store.size(key))))
    return replace(made_of(row), path=str(path))


def _expiry(context: ServiceContext) -> Any:
    return instant() + timedelta(hours=context.settings.render_slice_hours)


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

    def look(view: PageView) -> PageFacts:
        with context.jobs.seats.taken(row.tenant_id, check):
            return context.part(Workspaces).pool.look(workspace, view, check=check)

    if row.frames is None:
        new = wanted_of(row)
        wanted = new.to_spec
        one = settled(wanted, workspace.limits, look)
        view, duration, _ = one
        whole = SlicePlan(view, (0, 1))
        if new.is_video:
            duration = _allowed(context, one)
            slice_ms = max(new.work_slice_ms or DEFAULT_SLICE_MS, _least_ms(view))
            frames = frames_of(wanted, duration)
            if wanted.film.is_sound:
                # to pass by is what a slice after it would have to do as well
                whole = SlicePlan(view, (frames.start, frames.stop))
            else:
                whole = plan(view, frames, slice_ms=slice_ms)
                # what the request left open the page has decided
                validate_budget(context.settings, math.prod(view.pixels), whole.frames)
            if _was_drawn_alone(context, row, workspace, whole):
                whole = SlicePlan(view, (whole.borders[0], whole.borders[-1]))
        _write(context, row.id, whole, duration)
    return stored(context, row.id)


def stored(context: ServiceContext, render_id: str) -> SlicePlan:
    """How a render is parted now."""
    with context.database.read() as connection:
        return _stored(connection, render_id)


def _was_drawn_alone(
    context: ServiceContext, row: Row[Any], workspace: RenderWorkspace, plan: SlicePlan
) -> bool:
    """Whether another render of this page found that one browser has to draw it, and did so."""
    try:
        mark = browser_mark()
    except EngineUnavailable:
        # said where one is needed, which may be another machine
        return False
    frames = range(plan.borders[0], plan.borders[-1])
    own = recipe(plan.view, frames, wanted_of(row).to_spec, mark)
    cached = find(context, row.tenant_id, own, workspace)
    return cached is not None and bool(one_browser_notes(cached.made["notes"]))


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
        if row is not None and not one_browser_notes(row.notes):
            for one in parts:
                # a slice at the start of the video was drawn from the beginning
                if one.first and one.slice_id is not None:
                    deletion.remove(connection, FAMILY, one.slice_id)
            notes = Notes.of_json(row.notes or {})
            notes.say("browser", note)
            spent = sum(work_seconds(one.seconds) for one in parts)
            cost = sum((one.seconds or {}).get("processor", 0.0) for one in parts)
            seconds = {"discarded": round(spent, 3)}
            if cost:
                seconds["processor"] = round(cost, 3)
            values = {"notes": notes.as_json(), "seconds": seconds}
            connection.execute(renders.update().where(mine).values(**values))
            connection.execute(render_parts.delete().where(own))
            whole = range(min(one.first for one in parts), max(one.stop for one in parts))
            connection.execute(render_parts.insert(), _rows(render_id, [whole]))
        return _stored(connection, render_id)


def work_seconds(seconds: Mapping[str, float] | None) -> float:
    """What a slice cost a worker: the encoder works in parallel, on the same processors."""
    beside = ("encode", "processor")
    return sum(float(value) for name, value in (seconds or {}).items() if name not in beside)


def view_of(row: Row[Any]) -> PageView:
    """How a parted render is seen."""
    return replace(wanted_of(row).to_spec, width=row.width, height=row.height).view()


def _allowed(context: ServiceContext, one: Settled) -> int:
    duration = one.duration_ms
    if not duration:
        raise PageFailed(f"{NO_DURATION}{one.because}")
    limit = context.settings.max_render_ms
    if duration > limit:
        raise PageFailed(
            f"the page is {duration} ms long, more than the {limit} ms that a render may have: "
            "set duration_ms"
        )
    return duration


def _least_ms(view: PageView) -> int:
    """The shortest slice: an hour at a frame a second is no thousand slices of four frames."""
    return math.ceil(LEAST_FRAMES * 1000 / view.fps)


def _write(
    context: ServiceContext, render_id: str, plan: SlicePlan, duration_ms: int | None
) -> None:
    values = {
        "width": plan.view.width,
        "height": plan.view.height,
        "duration_ms": duration_ms,
        "frames": plan.frames,
    }
    # Of two runs, the one that came first has parted it.
    first = (renders.c.id == render_id) & renders.c.frames.is_(None)
    with context.database.write() as connection:
        if connection.execute(renders.update().where(first).values(**values)).rowcount:
            connection.execute(render_parts.insert(), _rows(render_id, plan.slices))


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
