"""One slice of a render: taken from those that are kept, or rendered and kept."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex.errors import PageFailed
from fragdex.rendering import seams
from fragdex.rendering.messages import SliceMade
from fragdex.rendering.recipe import browser_mark, recipe
from fragdex.rendering.seams import OneBrowserNeeded
from fragdex.service.context import ServiceContext
from fragdex.service.jobs.api import Job
from fragdex.service.records.tables import render_parts, renders
from fragdex.service.records.tenant_limits import limits_of
from fragdex.service.renders import slice_cache
from fragdex.service.renders.parting import draw_alone, view_of, work_seconds
from fragdex.service.renders.records import OPEN, is_over, noting_failure, wanted_of
from fragdex.service.renders.workspaces import Workspaces

_PROGRESS_SECONDS: Final = 0.5
_PART = render_parts.c


def run(context: ServiceContext, job: Job) -> None:
    """The job of one slice; what comes of it stands in the row of its part."""
    mine = (_PART.render_id == job.record_id) & (_PART.number == job.payload["number"])
    begun = _begin(context, job.record_id, mine)
    if begun is None:
        return
    render, part = begun
    # The parts may be others by the time this run ends.
    mine &= (_PART.first == part.first) & (_PART.stop == part.stop)
    budget = _Budget(context, job, render)
    check = budget.check
    name = job.id.rpartition(render.id)[2].strip("-")
    folder = context.work_folder(f"{render.id}.{name}.{job.attempt}")
    try:
        with (
            noting_failure(context, render_parts.update().where(mine)),
            context.part(Workspaces).opened(context, render, check) as workspace,
        ):
            view, wanted = view_of(render), wanted_of(render).to_spec
            frames = range(part.first, part.stop)
            own = recipe(view, frames, wanted, browser_mark())
            found = slice_cache.find(context, render.tenant_id, own, workspace)
            if found is not None:
                _done(context, mine, part, found.id, slice_cache.made_of(found), reused=True)
                return
            try:
                made = context.part(Workspaces).pool.draw(
                    workspace, wanted, view, frames, folder,
                    progress=_Progress(context, mine), check=check, cost=budget.need_cost,
                    all_drawn=bool(seams.notes_of(render.notes)),
                )  # fmt: skip
            except OneBrowserNeeded as error:
                draw_alone(context, render.id, seams.needed(error))
                return
            for line in seams.notes_of(render.notes):
                made.notes.say("browser", line)
            slice_id = slice_cache.keep(context, render, own, made, workspace, job.check)
            if slice_id is not None:
                _done(context, mine, part, slice_id, made, reused=False)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if is_over(context, render.id):
            context.part(Workspaces).leave(render.id)


def _begin(
    context: ServiceContext, render_id: str, mine: sa.ColumnElement[bool]
) -> tuple[Row[Any], Row[Any]] | None:
    """The rows of the render and of its part; None where nothing is to be done."""
    with context.database.write() as connection:
        render = connection.execute(
            sa.select(renders).where(renders.c.id == render_id, OPEN)
        ).one_or_none()
        part = connection.execute(sa.select(render_parts).where(mine)).one_or_none()
        if render is None or part is None:
            return None
        if part.slice_id is not None and slice_cache.is_kept(connection, part.slice_id):
            return None
        begun = render_parts.update().where(mine)
        connection.execute(begun.values(attempts=part.attempts + 1))
    return render, part


class _Budget:
    """What the slices of a render may take: those that are done, and this one from now on."""

    def __init__(self, context: ServiceContext, job: Job, render: Row[Any]) -> None:
        self._context, self._job, self._render_id = context, job, render.id
        with context.database.read() as connection:
            own = limits_of(connection, render.tenant_id)
            seconds = _seconds_of(connection, render.id)
        self._own, self._most = own.max_render_seconds, context.settings.max_render_work_seconds
        self._most_cost = own.max_render_cost
        self._spent = sum(map(work_seconds, seconds))
        self._cost = sum((one or {}).get("processor", 0.0) for one in seconds)
        self._begun = time.monotonic()
        # measured only where it is limited
        self.need_cost = None if self._most_cost is None else self._need_cost

    def check(self) -> None:
        """The job's own check, and whether the render has used up the time it may take."""
        self._job.check()
        spent = self._spent + time.monotonic() - self._begun
        name, most = "max_render_work_seconds", self._most
        if self._own is not None:
            name, most = "max_render_seconds", self._own
        if spent > most:
            raise self._over(name, most, "s of work")

    def _need_cost(self, taken: float) -> None:
        if self._most_cost is not None and self._cost + taken > self._most_cost:
            raise self._over("max_render_cost", self._most_cost, "s of processor time")

    def _over(self, name: str, most: float, unit: str) -> PageFailed:
        own = _PART.render_id == self._render_id
        total = sa.select(sa.func.sum(_PART.done), sa.func.sum(_PART.stop - _PART.first))
        with self._context.database.read() as connection:
            done, whole = connection.execute(total.where(own)).one()
        return PageFailed(
            f"the slices of the render took more than {most:g} {unit} ({name}); {done or 0} of"
            f" {whole or 0} frames were done",
            more={"limit": most},
            advice="make the film shorter or smaller, or the page cheaper to draw",
        )


def _seconds_of(connection: Connection, render_id: str) -> list[Mapping[str, float] | None]:
    """What workers have spent on the slices of a render that are done, or were discarded."""
    parts = sa.select(_PART.seconds).where(_PART.render_id == render_id)
    before = sa.select(renders.c.seconds).where(renders.c.id == render_id)
    return [*connection.scalars(parts), *connection.scalars(before)]


class _Progress:
    """Writes how many frames of a slice are done, now and then; never fewer than were."""

    def __init__(self, context: ServiceContext, mine: sa.ColumnElement[bool]) -> None:
        self._context, self._mine = context, mine
        self._written = time.monotonic()

    def __call__(self, done: int) -> None:
        if time.monotonic() - self._written < _PROGRESS_SECONDS:
            return
        self._written = time.monotonic()
        behind = self._mine & (_PART.done < done)
        with self._context.database.write() as connection:
            connection.execute(render_parts.update().where(behind).values(done=done))


def _done(
    context: ServiceContext, mine: sa.ColumnElement[bool], part: Row[Any], slice_id: str,
    made: SliceMade, *, reused: bool,
) -> None:  # fmt: skip
    values: Mapping[str, Any] = {
        "done": part.stop - part.first,
        "slice_id": slice_id,
        "reused": reused,
        # what is taken from another render costs nothing
        "seconds": {} if reused else made.seconds,
        "notes": made.notes.as_json(),
    }
    with context.database.write() as connection:
        connection.execute(render_parts.update().where(mine).values(**values))
