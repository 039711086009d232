"""What can be done with renders; no HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex.errors import Finished, RecordNotFound, TooLarge
from fragdex.rendering.archives import Contents, examine
from fragdex.service.context import ServiceContext
from fragdex.service.jobs.work import not_ready
from fragdex.service.outbox import emit
from fragdex.service.records import blobs, deletion
from fragdex.service.records.blobs import StoredBytes
from fragdex.service.records.identifiers import instant, md5_bytes, new_id
from fragdex.service.records.tables import render_slices, renders, uploads
from fragdex.service.records.tenant_limits import ensure_within_quota
from fragdex.service.renders.model import (
    NewRender,
    NewRenderBatch,
    RenderRecord,
    RenderStatus,
    suffix_of,
    validate_combination,
)
from fragdex.service.renders.records import (
    FAMILY,
    RENDERS,
    event_data,
    page_name,
    result_name,
    wanted_of,
)
from fragdex.service.renders.worker import RENDER
from fragdex.service.renders.workspaces import bounds_of
from fragdex.service.uploads.model import Arrival, Arrived, Progress, Target
from fragdex.service.uploads.operations import begin, no_bytes, state

_RENDER = renders.c
_WHY_GIVEN_UP: Final = {"error": "NeverReady", "detail": "its page did not come in time"}
_WHY_CANCELLED: Final = {"error": "NeverReady", "detail": "the render was cancelled"}


def create_render(context: ServiceContext, tenant_id: str, new: NewRender) -> RenderRecord:
    """A new render; with html it is queued, else it waits for a site.

    Raises:
        InvalidRequest: fields that are refused, or do not go together.
        TooLarge: too much html, or data.
        QuotaExceeded: the tenant would store too much.
        TooManyRequests: too many jobs of the tenant are in progress.
    """
    validate_combination(new, context.settings)
    with context.database.read() as connection:
        context.jobs.ensure_room(connection, tenant_id)
    if new.html is not None:
        return _queued(context, tenant_id, [new], new.html)[0]
    row = _row(tenant_id, new)
    with context.database.write() as connection:
        connection.execute(renders.insert().values(**row))
        ensure_within_quota(connection, tenant_id)
        return RENDERS.read(connection, tenant_id, row["id"])


def create_renders(
    context: ServiceContext, tenant_id: str, batch: NewRenderBatch
) -> list[RenderRecord]:
    """New renders of one page, all of them or none; raises as `create_render`."""
    new = batch.renders
    for one in new:
        validate_combination(one, context.settings)
    with context.database.read() as connection:
        context.jobs.ensure_room(connection, tenant_id, len(new))
    return _queued(context, tenant_id, new, batch.html)


def _row(tenant_id: str, new: NewRender) -> dict[str, Any]:
    return {
        "id": new_id(),
        "tenant_id": tenant_id,
        "md5": md5_bytes(new.md5) if new.md5 else None,
        "metadata": new.metadata or {},
        "status": RenderStatus.CREATED,
        "wanted": new.model_dump(mode="json", exclude={"html", "metadata", "md5"}),
        "is_archive": False,
        "created_at": instant(),
    }


def _queued(
    context: ServiceContext, tenant_id: str, new: Sequence[NewRender], html: str
) -> list[RenderRecord]:
    """Renders of one page, in one transaction."""
    pieces = [html.encode()]
    page = blobs.write(context.database, context.store, tenant_id, lambda: pieces)
    own = (page.md5, page.sha256, page.byte_size)
    rows = [_row(tenant_id, one) for one in new]
    with context.database.write() as connection:
        for row in rows:
            row |= {
                "page_md5": page.md5,
                "status": RenderStatus.PENDING,
                "queued_at": row["created_at"],
            }
            connection.execute(renders.insert().values(**row))
            blobs.keep(connection, tenant_id, *own, FAMILY, page_name(row["id"]), page.store_key)
            context.jobs.enqueue(connection, RENDER, row["id"], tenant_id=tenant_id)
        ensure_within_quota(connection, tenant_id)
        return [RENDERS.read(connection, tenant_id, row["id"]) for row in rows]


def find_render(context: ServiceContext, tenant_id: str, md5: bytes) -> RenderRecord:
    """The newest render that bears a mark.

    Raises:
        RecordNotFound: none of this tenant does.
    """
    bears = sa.select(_RENDER.id).where(_RENDER.tenant_id == tenant_id, _RENDER.md5 == md5)
    with context.database.read() as connection:
        render_id = connection.scalar(bears.order_by(_RENDER.id.desc()).limit(1))
        if render_id is None:
            raise RENDERS.not_found()
        return RENDERS.read(connection, tenant_id, render_id)


def open_upload(
    context: ServiceContext, tenant_id: str, render_id: str, byte_size: int, start: int
) -> None:
    """Make ready for bytes of a site; the first request for them tells how many there are.

    Another number starts again, as long as bytes are missing and it starts with the first one.

    Raises:
        RecordNotFound: this tenant has no such render.
        Finished: it has its page already, or is over.
        TooLarge: more bytes than a site may have.
    """
    limit = context.settings.max_render_upload_bytes
    if byte_size > limit:
        raise TooLarge(f"the archive is over the limit of {limit} bytes", more={"limit": limit})
    empty = None
    if not byte_size:
        with context.database.read() as connection:
            RENDERS.row(connection, tenant_id, render_id)
        empty = no_bytes(context, tenant_id, FAMILY, render_id, 0, None, arrival(context))
    while not _announced(context, tenant_id, render_id, byte_size, start, empty):
        pass


def _announced(
    context: ServiceContext,
    tenant_id: str,
    render_id: str,
    byte_size: int,
    start: int,
    empty: Arrived | None,
) -> bool:
    """Whether the upload is made ready; False: another request changed it at this moment."""
    with context.database.write() as connection:
        locked = _locked(connection, tenant_id, render_id)
        if locked is None:
            return False
        known, row = locked
        if known is not None and (known.byte_size == byte_size or known.completed_at is not None):
            return True
        if known is not None and start > 0:
            return True  # of a file of another size: the upload says so
        if row.status != RenderStatus.CREATED:
            raise Finished("the render has its page already", more={"state": row.status})
        deletion.forget_upload(connection, FAMILY, render_id)
        how = arrival(context)
        begin(context, connection, tenant_id, FAMILY, render_id, byte_size, None, how, empty)
        return True


def _locked(
    connection: Connection, tenant_id: str, render_id: str
) -> tuple[Row[Any] | None, Row[Any]] | None:
    """The upload of a render, if one was announced, and the render; held in this order.

    An upload that ends holds its row before it changes the render. None: one was announced between
    the two; a new transaction holds it.

    Raises:
        RecordNotFound: this tenant has no such render.
    """
    mine = (uploads.c.family == FAMILY) & (uploads.c.record_id == render_id)
    query = sa.select(uploads).where(mine, uploads.c.tenant_id == tenant_id)
    known = connection.execute(query.with_for_update()).one_or_none()
    row = RENDERS.row(connection, tenant_id, render_id, lock=True)
    if known is None and connection.execute(query).one_or_none() is not None:
        return None
    return known, row


def upload_of(context: ServiceContext, tenant_id: str, render_id: str) -> Progress:
    """How far the upload of a site is; none of its bytes are here before the first came.

    Raises:
        RecordNotFound: this tenant has no such render.
    """
    with context.database.read() as connection:
        RENDERS.row(connection, tenant_id, render_id)
    try:
        return state(context, tenant_id, FAMILY, render_id)
    except RecordNotFound:
        return Progress(0, 0, False)


def arrival(context: ServiceContext) -> Arrival:
    """What becomes of the bytes: the archive is read through, and the render queued."""
    return Arrival(finished=partial(_finished, context), examine=partial(_examine, context))


def target(context: ServiceContext, render_id: str) -> Target:
    """Where the bytes of a site go."""
    limit = context.settings.max_render_upload_bytes
    return Target(FAMILY, render_id, arrival(context), limit)


def cancel_render(context: ServiceContext, tenant_id: str, render_id: str) -> RenderRecord:
    """End a render; what runs of it is ended within seconds. Repeating it is harmless.

    Raises:
        RecordNotFound: this tenant has none of this id.
        Finished: it is complete, or failed.
    """
    with context.database.write() as connection:
        row = RENDERS.row(connection, tenant_id, render_id, lock=True)
        if row.status in (RenderStatus.COMPLETE, RenderStatus.FAILED):
            raise Finished(f"the render is {row.status}", more={"state": row.status})
        if row.status != RenderStatus.CANCELLED:
            values = {
                "status": RenderStatus.CANCELLED,
                "failed_at": instant(),
                "problem": _WHY_CANCELLED,
            }
            connection.execute(renders.update().where(_RENDER.id == render_id).values(**values))
            context.jobs.cancel(_job(render_id), connection)
            emit(context, connection, tenant_id, "render.cancelled", event_data(row))
        return RENDERS.read(connection, tenant_id, render_id)


def delete_render(context: ServiceContext, tenant_id: str, render_id: str) -> None:
    """Delete a render with its page, its result and its slices, and end it if it runs.

    Raises:
        RecordNotFound: this tenant has none of this id.
    """
    while not _deleted(context, tenant_id, render_id):
        pass


def _deleted(context: ServiceContext, tenant_id: str, render_id: str) -> bool:
    """Whether it is; False: another request announced an upload for it at this moment."""
    own = sa.select(render_slices.c.id).where(render_slices.c.render_id == render_id)
    with context.database.write() as connection:
        if _locked(connection, tenant_id, render_id) is None:
            return False
        context.jobs.cancel(_job(render_id), connection)
        for slice_id in connection.scalars(own).all():
            deletion.remove(connection, "render_slices", slice_id)
        return deletion.remove(connection, FAMILY, render_id)


def give_up_unsent(context: ServiceContext, limit: int = 1000) -> int:
    """Fail the renders whose page did not come; returns how many did, of at most `limit`.

    So it is where no byte of it has come for as long as an upload is kept.
    """
    before = instant() - timedelta(hours=context.settings.upload_hours)
    unsent = _RENDER.queued_at.is_(None) & _RENDER.failed_at.is_(None)
    query = sa.select(_RENDER.id, _RENDER.tenant_id).where(unsent, _RENDER.created_at <= before)
    due = context.database.all(query.limit(limit))
    given_up = 0
    for render_id, tenant_id in due:
        with context.database.write() as connection, suppress(RecordNotFound):
            given_up += _given_up(context, connection, tenant_id, render_id, before)
    return given_up


def _given_up(
    context: ServiceContext,
    connection: Connection,
    tenant_id: str,
    render_id: str,
    before: datetime,
) -> bool:
    locked = _locked(connection, tenant_id, render_id)
    if locked is None:
        return False  # its page begins to come at this moment
    upload, row = locked
    if row.status != RenderStatus.CREATED:
        return False
    if upload is not None:
        touched = max(filter(None, (upload.created_at, upload.written_at, upload.lease_until)))
        if touched > before:
            return False
    deletion.forget_upload(connection, FAMILY, render_id)
    values = {"status": RenderStatus.FAILED, "failed_at": instant(), "problem": _WHY_GIVEN_UP}
    connection.execute(renders.update().where(_RENDER.id == render_id).values(**values))
    data = {**event_data(row), "problem": _WHY_GIVEN_UP}
    emit(context, connection, tenant_id, "render.failed", data)
    return True


def result_of(context: ServiceContext, tenant_id: str, render_id: str, suffix: str) -> StoredBytes:
    """Where the result of a render is.

    Args:
        suffix: as the path has it. Under `mp4` every render is found.

    Raises:
        RecordNotFound: this tenant has none of this id, or it makes another kind of file.
        NotReady: it is not complete.
    """
    with context.database.read() as connection:
        row = RENDERS.row(connection, tenant_id, render_id)
        own = suffix_of(wanted_of(row).container)
        if suffix not in ("mp4", own):
            raise RecordNotFound(f"the result of this render is {own}")
        if row.status != RenderStatus.COMPLETE:
            raise not_ready("render", row.status)
        blob = blobs.used_by(connection, tenant_id, FAMILY, result_name(render_id))
    if blob is None:
        raise RecordNotFound("the result has been deleted")
    return StoredBytes(blob.store_key, blob.byte_size, blob.md5, blob.sha256, row.media_type)


def _examine(context: ServiceContext, arrived: Arrived) -> Contents:
    with context.store.local(arrived.store_key) as path:
        return examine(path, bounds_of(context))


def _finished(context: ServiceContext, connection: Connection, arrived: Arrived) -> None:
    mine = (_RENDER.id == arrived.record_id) & (_RENDER.status == RenderStatus.CREATED)
    values = {
        "page_md5": arrived.md5,
        "is_archive": True,
        "status": RenderStatus.PENDING,
        "queued_at": instant(),
    }
    if connection.execute(renders.update().where(mine).values(**values)).rowcount:
        context.jobs.enqueue(connection, RENDER, arrived.record_id, tenant_id=arrived.tenant_id)


def _job(render_id: str) -> str:
    return f"{RENDER}-{render_id}"
