"""Repairs: what requests and answers say of them, and what can be done; no HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.engine import Connection, Row
from typing_extensions import TypeAliasType

from fragdex.errors import BytesMissing, InvalidRequest
from fragdex.service.context import ServiceContext
from fragdex.service.records import blobs
from fragdex.service.records.identifiers import instant, new_id
from fragdex.service.records.tables import files, repairs
from fragdex.service.records.tenant_limits import ensure_within_quota
from fragdex.service.repairs.worker import OPEN, REPAIR, good_bytes
from fragdex.service.unprocessed.model import Problem
from fragdex.service.unprocessed.operations import ensure_media
from fragdex.service.unprocessed.records import FAMILY, UNPROCESSED, event_of
from fragdex.service.uploads.repository import Repository
from fragdex.service.web.events import Event
from fragdex.service.web.fields import NO_NUL, ApiModel, Listed, RequestBody, written_as

SpanState = TypeAliasType("SpanState", Literal["proved", "guessed", "lost", "structure"])
_RATE = written_as(
    r"[1-9][0-9]{0,5}(?:\.[0-9]{1,6}|/[1-9][0-9]{0,5})?", "a rate, such as 25 or 30000/1001,"
)


class RepairStatus(StrEnum):
    """How far a repair is."""

    REPAIRING = "repairing"
    COMPLETE = "complete"
    FAILED = "failed"


class NewRepair(RequestBody):
    """How a file is repaired."""

    like_file_id: Annotated[str, Field(min_length=1, max_length=36), NO_NUL] | None = Field(
        None,
        description="a good file from the same camera with the same settings; default: the "
        "tenant's file that the broken one is most like, if there is one",
    )
    rate: Annotated[str, Field(max_length=20), _RATE] | None = Field(
        None,
        description="pictures a second, where neither a good file nor the stream says it",
        examples=["30000/1001"],
    )


class RepairedTrack(ApiModel):
    """A track of the repaired file."""

    track_id: int
    type: str | None
    codec: str | None
    samples: int = Field(description="how many were found")
    proved: int = Field(description="how many of them by their own syntax; the others are guessed")
    duration_ms: int


class RepairSpan(ApiModel):
    """Bytes of the broken file, and what became of them."""

    start: int
    stop: int = Field(description="exclusive")
    state: SpanState
    what: str


class RepairReport(ApiModel):
    """What is proved, guessed and lost."""

    byte_size: int = Field(description="of the repaired file")
    lost_bytes: int = Field(description="of the broken file, in no sample and no box")
    tracks: list[RepairedTrack]
    findings: list[str] = Field(description="guesses and losses, as sentences")
    spans: list[RepairSpan] = Field(description="all bytes of the broken file; at most 500")


class RepairRecord(ApiModel):
    """The repair of a file."""

    id: str
    file_id: str = Field(description="the broken file, which stays as it is")
    like_file_id: str | None = Field(description="the good file; null: none is used")
    repaired_file_id: str | None = Field(
        description="the repaired file, which is processed like an upload; null until it is there"
    )
    status: RepairStatus
    progress: float = Field(ge=0, le=1)
    report: RepairReport | None = Field(description="null until it is complete")
    problem: Problem | None
    created_at: str
    completed_at: str | None
    failed_at: str | None


class RepairList(Listed):
    """Repairs, newest first."""

    repairs: list[RepairRecord]


_ROW = repairs.c


def repair_file(
    context: ServiceContext, tenant_id: str, file_id: str, new: NewRepair
) -> tuple[RepairRecord, bool]:
    """The repair of a file, and whether it is a new one.

    One of the same request that runs, or whose file is there, is given again; one that failed is
    followed by a new one.

    Raises:
        RecordNotFound: this tenant has no such file.
        BytesMissing: bytes of it are missing, or were deleted.
        Unprocessable: it is known to be no media file.
        InvalidRequest: the good file cannot be used.
        TooManyRequests: too many jobs of the tenant are in progress.
        QuotaExceeded: the tenant would store too much.
    """
    wanted = new.model_dump()
    with context.database.write() as connection:
        row = UNPROCESSED.row(connection, tenant_id, file_id, lock=True)
        ensure_media(connection, row)
        if blobs.used_by(connection, tenant_id, FAMILY, file_id) is None:
            raise BytesMissing(
                "only the tracks of this file were kept, and they cannot be repaired",
                advice="send the file again",
            )
        if new.like_file_id is not None and not good_bytes(connection, tenant_id, new.like_file_id):
            raise InvalidRequest(
                "there is no such video, or it has no bytes", pointer="/like_file_id"
            )
        known = _known(connection, file_id, wanted)
        if known is not None:
            return REPAIRS.read(connection, tenant_id, known), False
        context.jobs.ensure_room(connection, tenant_id)
        repair_id = new_id()
        values = {
            "id": repair_id,
            "tenant_id": tenant_id,
            "file_id": file_id,
            "wanted": wanted,
            "like_file_id": new.like_file_id,
            "progress": 0.0,
            "created_at": instant(),
        }
        connection.execute(repairs.insert().values(**values))
        ensure_within_quota(connection, tenant_id)
        context.jobs.enqueue(connection, REPAIR, repair_id, tenant_id=tenant_id)
        return REPAIRS.read(connection, tenant_id, repair_id), True


def _known(connection: Connection, file_id: str, wanted: dict[str, Any]) -> str | None:
    """The newest repair of this request, if it runs, or if the repaired file is still there."""
    query = sa.select(_ROW.id, _ROW.wanted, _ROW.completed_at, _ROW.repaired_file_id)
    mine = query.where(_ROW.file_id == file_id, _ROW.failed_at.is_(None)).order_by(_ROW.id.desc())
    for row in connection.execute(mine):
        if row.wanted == wanted:
            there = sa.select(files.c.id).where(files.c.id == row.repaired_file_id)
            going = row.completed_at is None or connection.execute(there).first() is not None
            return str(row.id) if going else None
    return None


def repairs_of(
    context: ServiceContext,
    tenant_id: str,
    file_id: str,
    limit: int,
    cursor: str | None,
    status: RepairStatus | None,
) -> RepairList:
    """One page of the repairs of a file, newest first.

    Raises:
        RecordNotFound: this tenant has no such file.
        InvalidRequest: a limit out of bounds, or no cursor of ours.
    """
    with context.database.read() as connection:
        UNPROCESSED.row(connection, tenant_id, file_id)
    return REPAIRS.page(context, tenant_id, limit, cursor, status, _ROW.file_id == file_id)


def delete_repair(context: ServiceContext, tenant_id: str, repair_id: str) -> None:
    """Delete a repair, and stop it if it is running; the repaired file stays.

    Raises:
        RecordNotFound: this tenant has none of this id.
    """
    with context.database.write() as connection:
        REPAIRS.row(connection, tenant_id, repair_id)
        context.jobs.cancel(f"{REPAIR}-{repair_id}", connection)
        connection.execute(repairs.delete().where(_ROW.id == repair_id))


def look(context: ServiceContext, tenant_id: str, ids: Sequence[str]) -> dict[str, Event]:
    """Where repairs stand, by id."""
    columns = (_ROW.id, _ROW.progress, _ROW.problem, _ROW.completed_at, _ROW.failed_at)
    query = sa.select(*columns).where(_ROW.tenant_id == tenant_id, _ROW.id.in_(ids))
    with context.database.read() as connection:
        return {row.id: event_of(row) for row in connection.execute(query)}


def _record_of(row: Row[Any]) -> RepairRecord:
    status = RepairStatus.REPAIRING if row.completed_at is None else RepairStatus.COMPLETE
    return RepairRecord.of_row(
        row,
        status=RepairStatus.FAILED if row.failed_at is not None else status,
        report=None if row.report is None else RepairReport.model_validate(row.report),
        problem=Problem.of(row.problem),
    )


REPAIRS = Repository(
    repairs,
    "repair",
    lambda _, rows: [_record_of(row) for row in rows],
    RepairList,
    {
        RepairStatus.COMPLETE: _ROW.completed_at.is_not(None),
        RepairStatus.FAILED: _ROW.failed_at.is_not(None),
        RepairStatus.REPAIRING: OPEN,
    },
    weight=_ROW.row_bytes,
)
"""The repairs of tenants."""
