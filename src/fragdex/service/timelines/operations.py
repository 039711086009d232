"""What can be done with timelines; no HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from fragdex.errors import Conflict, InvalidRequest, RecordNotFound
from fragdex.service.context import ServiceContext
from fragdex.service.files.operations import isobmff_id
from fragdex.service.isobmff.operations import FILES
from fragdex.service.records import deletion
from fragdex.service.records.identifiers import instant, new_id, rfc3339
from fragdex.service.records.tables import isobmff_files, timelines
from fragdex.service.records.tenant_limits import need_within_quota
from fragdex.service.streaming.stored_titles import media_of_file, title_of
from fragdex.service.timelines.joined import JoinedTitle, JoinedTitles
from fragdex.service.timelines.model import NewTimeline, TimelineList, TimelineRecord
from fragdex.service.uploads.repository import Repository
from fragdex.service.web.fields import record_id

__all__ = ["FAMILY", "TIMELINES", "create_timeline", "delete_timeline", "title_of_timeline"]

FAMILY = "timelines"


def create_timeline(
    context: ServiceContext, tenant_id: str, new: NewTimeline
) -> tuple[TimelineRecord, bool]:
    """A timeline of files that are there, and True.

    Raises:
        InvalidRequest: a file is not, or a time is past.
        QuotaExceeded: the tenant would store too much.
    """
    if new.expires_at is not None and new.expires_at <= instant():
        raise InvalidRequest("this time is past", pointer="/expires_at")
    files = [_file(context, tenant_id, number, one) for number, one in enumerate(new.files)]
    row = {
        "id": new_id(),
        "tenant_id": tenant_id,
        "name": new.name,
        "files": files,
        "gaps": new.gaps,
        "created_at": instant(),
        "expires_at": new.expires_at,
    }
    with context.database.write() as connection:
        connection.execute(timelines.insert().values(**row))
        need_within_quota(connection, tenant_id)
        return TIMELINES.read(connection, tenant_id, str(row["id"])), True


def _file(context: ServiceContext, tenant_id: str, number: int, file_id: str) -> str:
    """The ISOBMFF file that is meant."""
    try:
        known = record_id(file_id)
        try:
            with context.database.read() as connection:
                return str(FILES.row(connection, tenant_id, known).id)
        except RecordNotFound:
            return isobmff_id(context, tenant_id, known)
    except RecordNotFound as error:
        raise InvalidRequest(
            f"file {number + 1} cannot be played: {error.message}", pointer=f"/files/{number}"
        ) from None


def delete_timeline(context: ServiceContext, tenant_id: str, timeline_id: str) -> None:
    """Delete a timeline; its files stay.

    Raises:
        RecordNotFound: this tenant has none of this id.
    """
    with context.database.write() as connection:
        TIMELINES.row(connection, tenant_id, timeline_id, lock=True)
        deletion.remove(connection, FAMILY, timeline_id)


def title_of_timeline(context: ServiceContext, tenant_id: str, timeline_id: str) -> JoinedTitle:
    """The files of a timeline as one title.

    Raises:
        RecordNotFound: this tenant has none of this id.
        Conflict: a file of it was deleted.
        NotReady, FragdexError: as `media_of_file`, `title_of` and `JoinedTitle`.
    """
    with context.database.read() as connection:
        record = TIMELINES.read(connection, tenant_id, timeline_id)
    if record.missing:
        raise Conflict(
            f"{len(record.missing)} of its files were deleted: make another timeline without them",
            more={"missing": record.missing},
        )
    media = tuple(media_of_file(context, tenant_id, one) for one in record.files)
    return context.part(JoinedTitles).title(
        media, record.gaps, lambda: [title_of(context, tenant_id, one) for one in media]
    )


def _records(connection: Connection, rows: Sequence[Any]) -> list[TimelineRecord]:
    wanted = {(row.tenant_id, one) for row in rows for one in row.files}
    file = isobmff_files.c
    there: set[tuple[str, str]] = set()
    if wanted:
        query = sa.select(file.tenant_id, file.id).where(file.id.in_({one for _, one in wanted}))
        there = {(row.tenant_id, row.id) for row in connection.execute(query)}
    return [
        TimelineRecord(
            id=row.id,
            name=row.name,
            files=row.files,
            missing=[one for one in row.files if (row.tenant_id, one) not in there],
            gaps=row.gaps,
            created_at=rfc3339(row.created_at),
            expires_at=rfc3339(row.expires_at),
        )
        for row in rows
    ]


TIMELINES = Repository(timelines, "timeline", _records, TimelineList, {})
"""The timelines of tenants."""
