"""The jobs `render` and `render-slice`.

A render learns from its page what the request left open, is parted into slices, waits for them,
joins them, and becomes complete in one transaction. A slice is taken from those that are kept, or
rendered in a process of its own and kept. All of it may be killed at any moment and run again: the
parts stand in the database, slices that are done are found again, and a run that comes too late
publishes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Row

from fragdex.errors import EngineUnavailable
from fragdex.rendering import seams
from fragdex.rendering.browser.finding import find_engine, need_supported, version_of
from fragdex.rendering.plan import SlicePlan
from fragdex.service.context import ServiceContext
from fragdex.service.jobs.api import PARENTS, SLICES, Job, Work
from fragdex.service.outbox import emit
from fragdex.service.records.identifiers import instant
from fragdex.service.records.tables import renders
from fragdex.service.renders import slice_cache, slicing
from fragdex.service.renders.finishing import finish
from fragdex.service.renders.model import RenderStatus
from fragdex.service.renders.parting import draw_alone, part, stored
from fragdex.service.renders.records import (
    OPEN,
    event_data,
    gathered_notes,
    is_over,
    noting_failure,
)
from fragdex.service.renders.workspaces import Workspaces

RENDER: Final = "render"
SLICE: Final = "render-slice"

# The render itself runs no page: what ends it again and again is not its doing.
_ATTEMPTS: Final = 10
# How often slices that went away while their render waited are made again.
_ROUNDS: Final = 3

_RENDER = renders.c
_NOT_FOUND: Final = "not found"
_TOO_OLD: Final = "too old"


def _run(context: ServiceContext, job: Job) -> None:
    row = _begin(context, job.record_id)
    if row is None:
        context.part(Workspaces).clear(context, job.record_id)
        return
    seconds: dict[str, float] = {}
    try:
        with (
            noting_failure(context, renders.update().where(_RENDER.id == row.id)),
            context.part(Workspaces).opened(context, row, job.check) as workspace,
        ):
            begun = time.monotonic()
            parted = part(context, row, workspace, job.check)
            seconds["plan"] = time.monotonic() - begun
            begun = time.monotonic()
            # one of them may have found that one browser has to draw them all
            now = _draw(context, job, parted)
            rows = slice_cache.of_render(context, row.id)
            differing = seams.differing([slice_cache.made_of(one) for one in rows])
            # where some are gone again, the next run sees to it
            if now == parted and differing is not None and len(rows) == len(parted.slices):
                now = draw_alone(context, row.id, seams.note(differing))
            if now != parted:
                parted = _draw(context, job, now)
            seconds["slices"] = time.monotonic() - begun
            finish(context, job, row, workspace, parted, seconds)
    finally:
        context.part(Workspaces).leave(row.id)
        if is_over(context, row.id):
            context.part(Workspaces).clear(context, row.id)


def _draw(context: ServiceContext, job: Job, parted: SlicePlan) -> SlicePlan:
    """Have the slices of a render made, those that went away meanwhile once more.

    Returns how it is parted then.
    """
    numbers = [{"number": number} for number in range(len(parted.slices))]
    # A film that is drawn again by one browser has one slice, which is none of those before.
    stage = "s" if len(numbers) > 1 else "w"
    for again in range(_ROUNDS):
        # All of them in every round: a run that comes again finds those that are done.
        job.slices(SLICE, numbers, stage=f"{stage}r{job.attempt}-{again}-" if again else stage)
        now = stored(context, job.record_id)
        if now != parted or not slice_cache.missing_parts(context, job.record_id):
            return now
    return parted


def _begin(context: ServiceContext, render_id: str) -> Row[Any] | None:
    """The render to be made; None where it is over or deleted."""
    mine = _RENDER.id == render_id
    with context.database.write() as connection:
        row = connection.execute(sa.select(renders).where(mine, OPEN)).one_or_none()
        if row is None:
            return None
        values: dict[str, Any] = {"status": RenderStatus.RENDERING}
        if row.started_at is None:
            values["started_at"] = instant()
        connection.execute(renders.update().where(mine).values(**values))
    return row


def _failed(context: ServiceContext, job: Job, problem: Mapping[str, Any]) -> None:
    mine = (_RENDER.id == job.record_id) & OPEN
    with context.database.write() as connection:
        row = connection.execute(sa.select(renders).where(mine).with_for_update()).one_or_none()
        if row is not None:
            values = {
                "status": RenderStatus.FAILED,
                "failed_at": instant(),
                "problem": dict(problem),
                "notes": gathered_notes(connection, job.record_id, row.notes),
            }
            connection.execute(renders.update().where(mine).values(**values))
            data = {**event_data(row), "problem": dict(problem)}
            emit(context, connection, row.tenant_id, "render.failed", data)
    context.part(Workspaces).clear(context, job.record_id)


def browser_is_missing(state: str) -> bool:
    """Whether what `browser_state` gave means that nothing can be rendered here."""
    return state.startswith((_NOT_FOUND, _TOO_OLD))


def browser_state(context: ServiceContext) -> str:
    """The version of the browser, that it is missing, or that this process renders nothing."""
    if not context.settings.job_workers:
        return "not used here"
    try:
        engine = find_engine()
    except EngineUnavailable:
        return _NOT_FOUND
    version = version_of(engine.path)
    if version is None:
        return f"{engine.path.name}, its version is not known"
    try:
        need_supported(version)
    except EngineUnavailable:
        return f"{_TOO_OLD}: {version}"
    return version


WORK: tuple[Work, ...] = (
    Work(RENDER, _run, _failed, queue=PARENTS, attempts=_ATTEMPTS),
    Work(SLICE, slicing.run, queue=SLICES),
)
"""What the family has done by workers."""
