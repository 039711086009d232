"""The jobs `render` and `render-slice`.

A render learns from its page what the request left open, is parted into slices, waits for them,
joins them, and becomes complete in one transaction. A slice is taken from those that are kept, or
rendered in a process of its own and kept. All of it may be killed at any moment and run again: the
parts stand in the database, slices that are done are found again, and a run that comes too late
publishes nothing.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

import fragdex
from fragdex.digest import Digest
from fragdex.errors import BrowserGone, EngineUnavailable, PageFailed, Unavailable
from fragdex.record import record
from fragdex.rendering.browser.finding import find_engine, need_supported, version_of
from fragdex.rendering.messages import SliceMade
from fragdex.rendering.plan import (
    OneBrowserNeeded,
    SlicePlan,
    difference_note,
    first_difference,
    one_browser_notes,
    skipping_note,
)
from fragdex.rendering.pool import join_slices
from fragdex.rendering.recipe import browser_mark, recipe
from fragdex.service.context import ServiceContext
from fragdex.service.isobmff.indexing import store_index
from fragdex.service.jobs.work import PARENTS, SLICES, Job, Work
from fragdex.service.outbox import emit
from fragdex.service.records import blobs, deletion, trash
from fragdex.service.records.identifiers import instant
from fragdex.service.records.tables import render_parts, renders
from fragdex.service.records.tenant_limits import limits_of
from fragdex.service.renders import slices
from fragdex.service.renders.model import TYPES, RenderStatus
from fragdex.service.renders.records import (
    FAMILY,
    OPEN,
    event_data,
    gathered_notes,
    is_over,
    noting_failure,
    result_name,
    wanted_of,
)
from fragdex.service.renders.slices import draw_alone, part, stored, view_of, work_seconds
from fragdex.service.renders.workspaces import RenderWorkspace, Workspaces


@record(frozen=True, slots=True)
class _Result:
    """Bytes of the store that no record names yet."""

    bytes: blobs.Blob
    index_key: str | None
    # what should be heard and could not be decoded
    failed: Sequence[str] = ()
    loudness: dict[str, Any] | None = None


def finish(
    context: ServiceContext, job: Job, render: Row[Any], workspace: RenderWorkspace,
    parted: SlicePlan,
    seconds: dict[str, float],
) -> None:  # fmt: skip
    """Make the result out of the slices, and the render complete.

    Raises:
        Unavailable: a slice went away meanwhile.
    """
    begun = time.monotonic()
    rows = slices.of_render(context, render.id)
    if len(rows) != len(parted.slices):
        raise Unavailable("slices of the render are missing", retry_after=1)
    if wanted_of(render).is_video:
        folder = context.work_folder(f"{render.id}.join.{job.attempt}")
        with context.jobs.seats.taken(render.tenant_id, job.check):
            result = _joined(context, job, render, workspace, parted, rows, folder)
    else:
        result = _Result(slices.bytes_of(context, rows[0]), None)
    seconds["join"] = time.monotonic() - begun
    _publish(context, render, result, seconds)


def _joined(
    context: ServiceContext, job: Job, render: Row[Any], workspace: RenderWorkspace,
    parted: SlicePlan,
    rows: list[Row[Any]], folder: Path,
) -> _Result:  # fmt: skip
    drawn = []
    for number, row in enumerate(rows):
        job.check()
        drawn.append(slices.bring(context, row, folder / f"{number:06}.mp4"))
    try:
        return _join(context, job, render, workspace, parted, drawn, folder / "result.mp4")
    except BrowserGone:
        # Whatever is the matter with them, the next run has others.
        with context.database.write() as connection:
            for row in rows:
                deletion.remove(connection, slices.FAMILY, row.id)
        raise


def _join(
    context: ServiceContext, job: Job, render: Row[Any], workspace: RenderWorkspace,
    parted: SlicePlan,
    slices: list[SliceMade], out: Path,
) -> _Result:  # fmt: skip
    wanted = wanted_of(render).to_spec
    joined = join_slices(workspace, slices, parted.view, out, film=wanted.film, check=job.check)
    if joined.frames != parted.frames:
        raise BrowserGone(
            "the slices do not make up the render",
            expected=f"{parted.frames} frames",
            found=str(joined.frames),
        )
    index = fragdex.index(out) if wanted.film.is_isobmff else None
    result = blobs.write_file(context.database, context.store, render.tenant_id, out, job.check)
    if index is None:
        return _Result(result, None, joined.failed, joined.loudness)
    index.file = replace(index.file, md5=Digest(result.md5))
    return _Result(
        result, store_index(context, render.tenant_id, index).key, joined.failed, joined.loudness
    )


def _publish(
    context: ServiceContext, render: Row[Any], result: _Result, seconds: dict[str, float]
) -> None:
    mine = renders.c.id == render.id
    own, key = result.bytes, result.index_key
    with context.database.write() as connection:
        query = sa.select(renders.c.notes, renders.c.seconds).where(mine, OPEN).with_for_update()
        row = connection.execute(query).one_or_none()
        if row is None:
            return
        name = result_name(render.id)
        digests = (own.md5, own.sha256)
        blobs.keep(
            connection, render.tenant_id, *digests, own.byte_size, FAMILY, name, own.store_key
        )
        if key is not None and not trash.claim(connection, key):
            raise Unavailable("the index of the result was not kept in time", retry_after=1)
        notes: dict[str, Any] = dict(gathered_notes(connection, render.id, row.notes))
        if result.loudness is not None:
            notes["loudness"] = result.loudness
        notes["refused"] += result.failed
        seconds = {**(row.seconds or {}), **seconds}
        values = {
            "status": RenderStatus.COMPLETE,
            "completed_at": instant(),
            "media_type": TYPES[wanted_of(render).container],
            "byte_size": own.byte_size,
            "result_md5": own.md5,
            "index_key": key,
            "seconds": {name: round(value, 3) for name, value in seconds.items()},
            "notes": notes,
        }
        connection.execute(renders.update().where(mine).values(**values))
        data = {"byte_size": own.byte_size, "media_type": values["media_type"]}
        data = event_data(render) | data
        emit(context, connection, render.tenant_id, "render.completed", data)


_PROGRESS_SECONDS: Final = 0.5
_PART = render_parts.c


def run_slice(context: ServiceContext, job: Job) -> None:
    """The job of one slice; what comes of it stands in the row of its part."""
    mine = (_PART.render_id == job.record_id) & (_PART.number == job.payload["number"])
    begun = _begin_slice(context, job.record_id, mine)
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
            cached = slices.find(context, render.tenant_id, own, workspace)
            if cached is not None:
                _done(context, mine, part, cached.id, slices.made_of(cached), reused=True)
                return
            try:
                drawn = context.part(Workspaces).pool.draw(
                    workspace, wanted, view, frames, folder,
                    progress=_Progress(context, mine), check=check, cost=budget.need_cost,
                    all_drawn=bool(one_browser_notes(render.notes)),
                )  # fmt: skip
            except OneBrowserNeeded as error:
                draw_alone(context, render.id, skipping_note(error))
                return
            for line in one_browser_notes(render.notes):
                drawn.notes.say("browser", line)
            slice_id = slices.keep(context, render, own, drawn, workspace, job.check)
            if slice_id is not None:
                _done(context, mine, part, slice_id, drawn, reused=False)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if is_over(context, render.id):
            context.part(Workspaces).leave(render.id)


def _begin_slice(
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
        if part.slice_id is not None and slices.is_cached(connection, part.slice_id):
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

    def _need_cost(self, seconds: float) -> None:
        if self._most_cost is not None and self._cost + seconds > self._most_cost:
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
            advice="make the video shorter or smaller, or the page cheaper to draw",
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
        self._context.database.change(render_parts.update().where(behind).values(done=done))


def _done(
    context: ServiceContext, mine: sa.ColumnElement[bool], part: Row[Any], slice_id: str,
    drawn: SliceMade, *, reused: bool,
) -> None:  # fmt: skip
    values: Mapping[str, Any] = {
        "done": part.stop - part.first,
        "slice_id": slice_id,
        "reused": reused,
        # what is taken from another render costs nothing
        "seconds": {} if reused else drawn.seconds,
        "notes": drawn.notes.as_json(),
    }
    context.database.change(render_parts.update().where(mine).values(**values))


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
            rows = slices.of_render(context, row.id)
            differing = first_difference([slices.made_of(one) for one in rows])
            # where some are gone again, the next run sees to it
            if now == parted and differing is not None and len(rows) == len(parted.slices):
                now = draw_alone(context, row.id, difference_note(differing))
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
    # A video that is drawn again by one browser has one slice, none of those before.
    stage = "s" if len(numbers) > 1 else "w"
    for again in range(_ROUNDS):
        # All of them in every round: a run that comes again finds those that are done.
        job.slices(SLICE, numbers, stage=f"{stage}r{job.attempt}-{again}-" if again else stage)
        now = stored(context, job.record_id)
        if now != parted or not slices.missing_parts(context, job.record_id):
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
    Work(SLICE, run_slice, queue=SLICES),
)
"""What the family has done by workers."""
