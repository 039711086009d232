"""Slices become the result of a render: joined, indexed, kept, and told in one transaction."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Row

import fragdex
from fragdex.errors import BrowserGone, Unavailable
from fragdex.rendering.messages import SliceMade
from fragdex.rendering.plan import SlicePlan
from fragdex.rendering.pool import join_slices
from fragdex.service.context import ServiceContext
from fragdex.service.isobmff.indexing import store_index
from fragdex.service.jobs.api import Job
from fragdex.service.outbox import emit
from fragdex.service.records import blobs, deletion, trash
from fragdex.service.records.identifiers import instant
from fragdex.service.records.tables import renders
from fragdex.service.renders import slice_cache
from fragdex.service.renders.model import TYPES, RenderStatus
from fragdex.service.renders.records import (
    FAMILY,
    OPEN,
    event_data,
    gathered_notes,
    result_name,
    wanted_of,
)
from fragdex.service.renders.workspaces import RenderWorkspace


@dataclass(frozen=True, slots=True)
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
    rows = slice_cache.of_render(context, render.id)
    if len(rows) != len(parted.slices):
        raise Unavailable("slices of the render are missing", retry_after=1)
    if wanted_of(render).is_video:
        folder = context.work_folder(f"{render.id}.join.{job.attempt}")
        with context.jobs.seats.taken(render.tenant_id, job.check):
            result = _joined(context, job, render, workspace, parted, rows, folder)
    else:
        result = _Result(slice_cache.bytes_of(context, rows[0]), None)
    seconds["join"] = time.monotonic() - begun
    _publish(context, render, result, seconds)


def _joined(
    context: ServiceContext, job: Job, render: Row[Any], workspace: RenderWorkspace,
    parted: SlicePlan,
    rows: list[Row[Any]], folder: Path,
) -> _Result:  # fmt: skip
    slices = []
    for number, row in enumerate(rows):
        job.check()
        slices.append(slice_cache.bring(context, row, folder / f"{number:06}.mp4"))
    try:
        return _join(context, job, render, workspace, parted, slices, folder / "result.mp4")
    except BrowserGone:
        # Whatever is the matter with them, the next run has others.
        with context.database.write() as connection:
            for row in rows:
                deletion.remove(connection, slice_cache.FAMILY, row.id)
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
    index.source = replace(index.source, md5=result.md5.hex())
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
        told: dict[str, Any] = dict(gathered_notes(connection, render.id, row.notes))
        if result.loudness is not None:
            told["loudness"] = result.loudness
        told["refused"] += result.failed
        seconds = {**(row.seconds or {}), **seconds}
        values = {
            "status": RenderStatus.COMPLETE,
            "completed_at": instant(),
            "media_type": TYPES[wanted_of(render).wanted.container],
            "byte_size": own.byte_size,
            "result_md5": own.md5,
            "index_key": key,
            "seconds": {name: round(value, 3) for name, value in seconds.items()},
            "notes": told,
        }
        connection.execute(renders.update().where(mine).values(**values))
        data = {"byte_size": own.byte_size, "media_type": values["media_type"]}
        data = event_data(render) | data
        emit(context, connection, render.tenant_id, "render.completed", data)
