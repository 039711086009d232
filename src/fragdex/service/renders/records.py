"""The rows of renders, read for their owner: records, progress, what pages said."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex.errors import ServiceError
from fragdex.rendering.browser.model import Notes, missing_fonts
from fragdex.rendering.site import recorded as data_digest
from fragdex.service.context import ServiceContext
from fragdex.service.records.identifiers import instant, md5_text
from fragdex.service.records.tables import render_parts, renders, uploads
from fragdex.service.renders.model import (
    DEFAULT_SLICE_MS,
    TYPES,
    NewRender,
    RenderList,
    RenderRecord,
    RenderSlice,
    RenderStatus,
    recorded,
)
from fragdex.service.unprocessed.model import Problem
from fragdex.service.uploads.repository import Repository
from fragdex.service.web.events import Event

FAMILY: Final = "renders"
"""The word for renders in `uploads` and `blob_uses`."""

_RENDER, _PART = renders.c, render_parts.c

OPEN: Final = _RENDER.status.in_([RenderStatus.PENDING, RenderStatus.RENDERING])
"""Work on it is wanted."""


def page_name(render_id: str) -> str:
    """The name under which a render uses the bytes of its html."""
    return f"{render_id}/page"


def result_name(render_id: str) -> str:
    """The name under which a render uses the bytes of its result."""
    return f"{render_id}/result"


def wanted_of(row: Row[Any]) -> NewRender:
    """The request of a render; what a later version of the service knows besides is left out."""
    known = NewRender.member_names()
    return NewRender.model_validate(
        {name: row.wanted[name] for name in known if name in row.wanted}
    )


def event_data(row: Row[Any]) -> dict[str, Any]:
    """What events say of a render; `row` has its `id`, `md5` and `metadata`."""
    md5 = None if row.md5 is None else md5_text(row.md5)
    return {"id": row.id, "md5": md5, "metadata": row.metadata}


def is_over(context: ServiceContext, render_id: str) -> bool:
    """Whether no work on a render is wanted: it is over, or deleted."""
    query = sa.select(_RENDER.id).where(_RENDER.id == render_id, OPEN)
    return context.database.first(query) is None


def _records_of(connection: Connection, rows: Sequence[Row[Any]]) -> list[RenderRecord]:
    ids = [row.id for row in rows]
    query = sa.select(render_parts).where(_PART.render_id.in_(ids)).order_by(_PART.number)
    parts: dict[str, list[Row[Any]]] = {id: [] for id in ids}
    for part in connection.execute(query):
        parts[part.render_id].append(part)
    waiting = [row.id for row in rows if row.status == RenderStatus.CREATED]
    sent: dict[str, int] = {}
    if waiting:
        own = (uploads.c.family == FAMILY) & uploads.c.record_id.in_(waiting)
        query = sa.select(uploads.c.record_id, uploads.c.next_byte).where(own)
        sent = {row.record_id: row.next_byte for row in connection.execute(query)}
    return [_record(row, parts[row.id], sent.get(row.id)) for row in rows]


def _record(row: Row[Any], parts: list[Row[Any]], next_byte: int | None) -> RenderRecord:
    new, notes = wanted_of(row), row.notes or {}
    spec = new.to_spec
    data, data_sha256 = data_digest(new.data)
    settled = {"width": row.width, "height": row.height, "duration_ms": row.duration_ms}
    fields = recorded(spec) | {name: one for name, one in settled.items() if one is not None}
    return RenderRecord.of_row(
        row,
        strategy=new.strategy or "v1",
        output=new.stored,
        **fields,
        frame_rate=str(spec.fps),
        work_slice_ms=new.work_slice_ms or DEFAULT_SLICE_MS,
        frames_done=sum(part.done for part in parts),
        slices=[_slice(part) for part in parts],
        seconds=_seconds(row, parts),
        media_type=TYPES[new.container],
        next_byte=next_byte,
        problem=Problem.of(row.problem),
        data=None if data is None else dict(data),
        data_sha256=data_sha256,
        incomplete=notes.get("incomplete", []),
        console=notes.get("console", []),
        blocked=notes.get("blocked", []),
        refused=notes.get("refused", []),
        loudness=notes.get("loudness"),
        browser=[*notes.get("browser", []), *missing_fonts(notes.get("glyphs", []))],
        browser_versions=notes.get("browser_versions", []),
    )


def _slice(part: Row[Any]) -> RenderSlice:
    return RenderSlice(
        first_frame=part.first,
        frames=part.stop - part.first,
        frames_done=part.done,
        reused=part.reused,
        attempts=part.attempts,
        seconds=part.seconds or {},
    )


def _seconds(row: Row[Any], parts: Iterable[Row[Any]]) -> dict[str, float]:
    seconds: dict[str, float] = dict(row.seconds or {})
    if row.queued_at is not None:
        begun = row.started_at or row.completed_at or row.failed_at or instant()
        ended = row.completed_at or row.failed_at or instant()
        seconds["wait"] = round((begun - row.queued_at).total_seconds(), 3)
        seconds["whole"] = round((ended - row.queued_at).total_seconds(), 3)
    for part in parts:
        for name, value in (part.seconds or {}).items():
            seconds[name] = round(seconds.get(name, 0.0) + value, 3)
    return seconds


# about what the record of a slice takes
_SLICES = sa.select(sa.func.count() * 256).where(_PART.render_id == _RENDER.id).scalar_subquery()
RENDERS: Final = Repository(
    renders, "render", _records_of, RenderList, weight=_RENDER.row_bytes + _SLICES
)
"""The renders of tenants."""


@contextlib.contextmanager
def noting_failure(context: ServiceContext, change: sa.Update) -> Iterator[None]:
    """Write down what the page said until an error, where the error tells it.

    Args:
        change: of the row whose `notes` they become.
    """
    try:
        yield
    except ServiceError as error:
        notes = Notes.of_json(error.more)
        if notes != Notes():
            context.database.change(change.values(notes=notes.as_json()))
        raise


def gathered_notes(
    connection: Connection, render_id: str, first: Mapping[str, Any] | None = None
) -> dict[str, list[Any]]:
    """What all slices of a render told, each line once."""
    query = sa.select(render_parts.c.notes).where(
        render_parts.c.render_id == render_id, render_parts.c.notes.is_not(None)
    )
    whole = Notes()
    for notes in (first, *connection.scalars(query.order_by(render_parts.c.number))):
        whole.add(Notes.of_json(notes or {}))
    return whole.as_json()


def progress(context: ServiceContext, tenant_id: str, ids: Sequence[str]) -> dict[str, Event]:
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
