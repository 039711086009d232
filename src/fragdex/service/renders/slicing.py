"""One slice of a render: taken from those that are kept, or rendered and kept."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Row

from fragdex.service.errors import ServiceError
from fragdex.service.house import House
from fragdex.service.jobs.door import Job
from fragdex.service.records.tables import render_parts, renders
from fragdex.service.renders import kept, notes, stands
from fragdex.service.renders.browser.timing import View
from fragdex.service.renders.made import SliceMade
from fragdex.service.renders.parting import view_of
from fragdex.service.renders.recipe import recipe, still_recipe
from fragdex.service.renders.records import OPEN, is_over, wanted_of
from fragdex.service.renders.request import Jpeg, Png, WebP
from fragdex.service.renders.running import run_slice, run_still
from fragdex.service.renders.stands import Stand
from fragdex.service.renders.stills import Still

__all__ = ["run"]

_PROGRESS_SECONDS: Final = 0.5
_PART = render_parts.c


def run(house: House, job: Job) -> None:
    """The job of one slice; what comes of it stands in the row of its part."""
    mine = (_PART.render_id == job.record_id) & (_PART.number == job.payload["number"])
    begun = _begin(house, job.record_id, mine)
    if begun is None:
        return
    render, part = begun
    name = job.id.rpartition(render.id)[2].strip("-")
    folder = house.work_folder(f"{render.id}.{name}.{job.attempt}")
    try:
        with stands.standing(house, render, job.check) as stand:
            own = _recipe(render, part)
            found = kept.find(house, render.tenant_id, own, stand)
            if found is not None:
                _done(house, mine, part, found.id, kept.told(found), reused=True)
                return
            made = _made(house, job, render, part, mine, stand, folder)
            slice_id = kept.keep(house, render, own, made, stand, job.check)
            if slice_id is not None:
                _done(house, mine, part, slice_id, made, reused=False)
    except ServiceError as error:
        told = notes.of_error(error)
        if told is not None:
            with house.database.write() as connection:
                connection.execute(render_parts.update().where(mine).values(notes=told))
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if is_over(house, render.id):
            stands.leave(render.id)


def _begin(
    house: House, render_id: str, mine: sa.ColumnElement[bool]
) -> tuple[Row[Any], Row[Any]] | None:
    """The rows of the render and of its part; None where nothing is to be done."""
    with house.database.write() as connection:
        render = connection.execute(
            sa.select(renders).where(renders.c.id == render_id, OPEN)
        ).one_or_none()
        part = connection.execute(sa.select(render_parts).where(mine)).one_or_none()
        if render is None or part is None:
            return None
        if part.slice_id is not None and not kept.missing(connection, {0: part.slice_id}):
            return None
        begun = render_parts.update().where(mine)
        connection.execute(begun.values(attempts=part.attempts + 1))
    return render, part


def _recipe(render: Row[Any], part: Row[Any]) -> bytes:
    view, mark = view_of(render), kept.browser_mark()
    wanted = wanted_of(render)
    if wanted.is_video:
        return recipe(view, part.first, part.stop, mark)
    return still_recipe(view, wanted.time_ms or 0, _still(wanted.wanted), mark)


def _still(output: Any) -> Still:
    if isinstance(output, Jpeg):
        return Still("jpeg", output.quality)
    if isinstance(output, Png):
        return Still("png", compression=output.compression, transparency=output.transparency)
    assert isinstance(output, WebP)
    return Still("webp", output.quality, output.compression, output.transparency)


def _made(
    house: House, job: Job, render: Row[Any], part: Row[Any], mine: sa.ColumnElement[bool],
    stand: Stand, folder: Path,
) -> SliceMade:  # fmt: skip
    view: View = view_of(render)
    wanted = wanted_of(render)
    how: dict[str, Any] = {
        "outside": stand.asked,
        "limits": stand.limits,
        "check": job.check,
        "warm": stands.warm(),
        "key": stand.key,
    }
    if wanted.is_video:
        progress = _Progress(house, mine)
        return run_slice(stand.site, view, part.first, part.stop, folder, progress=progress, **how)
    return run_still(stand.site, view, wanted.time_ms or 0, _still(wanted.wanted), folder, **how)


class _Progress:
    """Writes how many frames of a slice are done, now and then; never fewer than were."""

    def __init__(self, house: House, mine: sa.ColumnElement[bool]) -> None:
        self._house, self._mine = house, mine
        self._written = time.monotonic()

    def __call__(self, done: int) -> None:
        if time.monotonic() - self._written < _PROGRESS_SECONDS:
            return
        self._written = time.monotonic()
        behind = self._mine & (_PART.done < done)
        with self._house.database.write() as connection:
            connection.execute(render_parts.update().where(behind).values(done=done))


def _done(
    house: House, mine: sa.ColumnElement[bool], part: Row[Any], slice_id: str, made: SliceMade,
    *, reused: bool,
) -> None:  # fmt: skip
    values: Mapping[str, Any] = {
        "done": part.stop - part.first,
        "slice_id": slice_id,
        "reused": reused,
        # what is taken from another render costs nothing
        "seconds": {} if reused else made.seconds,
        "notes": notes.plain(made.notes),
    }
    with house.database.write() as connection:
        connection.execute(render_parts.update().where(mine).values(**values))
