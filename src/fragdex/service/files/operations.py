"""Files of any type: what they are to a caller, gathered from all families, and what can be done.

No HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Final

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.engine import Connection, Row

from fragdex.errors import Conflict, InvalidRequest, NotYet, RecordNotFound, UploadIncomplete
from fragdex.service import captions
from fragdex.service.captions import CaptionFacts
from fragdex.service.context import ServiceContext
from fragdex.service.images import operations as images
from fragdex.service.images.operations import NewImage
from fragdex.service.isobmff.operations import TrackRecord
from fragdex.service.isobmff.tracks import file_with_tracks
from fragdex.service.records import deletion, pages
from fragdex.service.records.identifiers import instant, md5_bytes, rfc3339
from fragdex.service.records.tables import (
    FileType,
    files,
    isobmff_files,
    isobmff_tracks,
    processes,
    uploads,
)
from fragdex.service.records.tenant_limits import ensure_within_quota
from fragdex.service.unprocessed import operations as unprocessed
from fragdex.service.unprocessed.model import Problem
from fragdex.service.unprocessed.records import UNPROCESSED
from fragdex.service.unprocessed.worker import isobmff_file
from fragdex.service.uploads.model import Target
from fragdex.service.web.events import Event
from fragdex.service.web.fields import (
    ApiModel,
    ByteSize,
    FileName,
    Instant,
    Listed,
    Md5Text,
    RequestBody,
    written_as,
)


class AnyFileStatus(StrEnum):
    """How far a file is."""

    CREATED = "created"
    UPLOADING = "uploading"
    PROCESSING = "processing"
    READY = "ready"
    FAILED = "failed"


_PRINTABLE = written_as(r"[\x20-\x7e]*", "a text of printable ASCII")


class NewAnyFile(RequestBody):
    """A file to come. A video may as well have sound alone."""

    filename: FileName
    type: FileType
    byte_size: ByteSize | None = Field(
        description="bytes in all; null: nobody knows yet, the total of a Content-Range says it"
    )
    md5: Md5Text | None = None
    mime_type: Annotated[str, Field(max_length=40), _PRINTABLE] | None = Field(
        None, description="of images and captions, else from the name"
    )
    expires_at: Instant | None = Field(
        None, description="when the file and all that was made of it are deleted"
    )


class NewName(RequestBody):
    """Another name of a file."""

    filename: FileName


class FileTrack(ApiModel):
    """A track of a video."""

    track_id: int = Field(description="-1: the scrub track")
    type: str
    codec_name: str | None
    duration_ms: int | None
    byte_size: int | None = Field(description="null for a track that is only in the index")


class UploadPart(ApiModel):
    """Bytes of a file that are missing, and where they are put."""

    start: int = Field(description="the first byte")
    byte_size: int
    url: str = Field(description="PUT the bytes here, without any key")


class UploadParts(ApiModel):
    """The first parts of a file that are missing, at most 100."""

    parts: list[UploadPart]
    missing: int = Field(description="all parts that are missing")
    expires_at: str = Field(description="of the URLs")


class AnyFile(ApiModel):
    """A file of any type."""

    id: str
    filename: str
    type: FileType
    status: AnyFileStatus
    byte_size: int | None = Field(
        description="null for a video known by its tracks or index alone, and while a sender has"
        " not said how many bytes there will be"
    )
    md5: str | None = Field(description="dashed; null until it is announced or known")
    next_byte: int = Field(description="bytes before this one are here to stay")
    mime_type: str | None
    width: int | None = Field(description="pixels, once they are known")
    height: int | None
    problem: Problem | None = Field(description="why it failed")
    created_at: str
    completed_at: str | None = Field(description="since when it is ready")
    expires_at: str | None
    isobmff_file_id: str | None = Field(
        description="of a video that was processed or sent in tracks: what it is in"
        " `/isobmff_files`, its own id, or that of an earlier file of the same bytes"
    )
    tracks: list[FileTrack] = Field(description="of a video that was processed, or sent in tracks")


class AnyFileList(Listed):
    """Files of all types, newest first."""

    files: list[AnyFile]


class Deleted(ApiModel):
    """What was deleted."""

    id: str
    success: bool = True


def create_file(context: ServiceContext, tenant_id: str, new: NewAnyFile) -> tuple[AnyFile, bool]:
    """A record for a file to come, and whether it is a new one.

    Raises:
        InvalidRequest: a type that is not taken here, no md5, a time that is past.
        TooLarge: more bytes than a file of its type may have.
        Unprocessable: no bytes are announced, and an md5 that they do not have.
    """
    if new.expires_at is not None and new.expires_at <= instant():
        raise InvalidRequest("expires_at is in the past", pointer="/expires_at")
    fields: dict[str, Any] = {
        "filename": new.filename,
        "byte_size": new.byte_size,
        "mime_type": new.mime_type,
    }
    if new.type is FileType.IMAGE:
        # not checked again: what is wrong with these fields is said of this request's
        image = NewImage.model_construct(md5=new.md5, **fields)
        created = images.create_image(context, tenant_id, image, new.expires_at)
        return file_by_id(context, tenant_id, created[0].id), created[1]
    if new.type is FileType.CAPTION:
        caption = CaptionFacts.model_construct(**fields)
        written = captions.create_caption(context, tenant_id, caption, new.md5, new.expires_at)
        return file_by_id(context, tenant_id, written[0].id), written[1]
    record, is_new = unprocessed.announce(
        context,
        tenant_id,
        new.filename,
        new.byte_size,
        None if new.md5 is None else md5_bytes(new.md5),
        mime_type=new.mime_type,
        expires_at=new.expires_at,
        process=True,
    )
    return file_by_id(context, tenant_id, record.id), is_new


def file_by_id(context: ServiceContext, tenant_id: str, file_id: str) -> AnyFile:
    """A file.

    Raises:
        RecordNotFound: this tenant has none of this id.
    """
    with context.database.read() as connection:
        row = _need(_row_by_id(connection, tenant_id, file_id))
    return _record_of(row, _tracks(context, tenant_id, row))


def file_by_md5(context: ServiceContext, tenant_id: str, md5: bytes) -> AnyFile:
    """The file whose bytes have this md5; raises as `file_by_id`."""
    with context.database.read() as connection:
        row = _need(_row_by_md5(connection, tenant_id, md5))
    return _record_of(row, _tracks(context, tenant_id, row))


def list_files(
    context: ServiceContext,
    tenant_id: str,
    limit: int,
    cursor: str | None = None,
    type_: FileType | None = None,
    status: AnyFileStatus | None = None,
) -> AnyFileList:
    """One page of a tenant's files of all types, newest first; raises as `pages.page`."""
    track = isobmff_tracks.c
    tracks: dict[str, list[Row[Any]]] = {}
    with context.database.read() as connection:
        listed = _page_of_rows(connection, tenant_id, limit, cursor, type_, status)
        isobmff_ids = [row.isobmff_id for row in listed.rows if row.isobmff_id is not None]
        query = (
            sa.select(isobmff_tracks).where(track.file_id.in_(isobmff_ids)).order_by(track.track_id)
        )
        for one in connection.execute(query):
            tracks.setdefault(one.file_id, []).append(one)
    records = [_record_of(row, tracks.get(row.isobmff_id, [])) for row in listed.rows]
    return AnyFileList(files=records, next_cursor=listed.next_cursor)


def delete_file(context: ServiceContext, tenant_id: str, file_id: str) -> None:
    """Delete a file with all that was made of it; raises as `file_by_id`."""
    with context.database.write() as connection:
        row = _need(_row_by_id(connection, tenant_id, file_id))
        if row.type == FileType.VIDEO:
            unprocessed.cancel_all(context, connection, file_id)
        deletion.remove(connection, row.type, file_id)
        if row.type == FileType.VIDEO:
            deletion.remove_made(connection, file_id)


def rename_file(context: ServiceContext, tenant_id: str, file_id: str, filename: str) -> AnyFile:
    """Give a file another name; raises as `file_by_id`."""
    with context.database.write() as connection:
        _need(_row_by_id(connection, tenant_id, file_id))
        for table in (files, isobmff_files):  # a video in one of them or in both, under one id
            change = table.update().where(table.c.id == file_id)
            connection.execute(change.values(filename=filename))
        ensure_within_quota(connection, tenant_id)
    return file_by_id(context, tenant_id, file_id)


def type_of(context: ServiceContext, tenant_id: str, file_id: str) -> FileType:
    """What a file is; raises as `file_by_id`."""
    with context.database.read() as connection:
        return FileType(_need(_row_by_id(connection, tenant_id, file_id)).type)


def target_of(context: ServiceContext, tenant_id: str, file_id: str) -> Target:
    """Where the bytes of a file go; raises as `file_by_id`."""
    return _TARGETS[type_of(context, tenant_id, file_id)](context, tenant_id, file_id)


_TARGETS = {
    FileType.IMAGE: images.IMAGES.target,
    FileType.CAPTION: captions.CAPTIONS.target,
    FileType.VIDEO: unprocessed.target,
}


_NOT_MADE: Final = {
    AnyFileStatus.CREATED: UploadIncomplete,
    AnyFileStatus.UPLOADING: UploadIncomplete,
    AnyFileStatus.PROCESSING: NotYet,
}
"""Why a file has no ISOBMFF file yet; all others will never have one."""


def isobmff_id(context: ServiceContext, tenant_id: str, file_id: str, *, make: bool = False) -> str:
    """The id of the ISOBMFF file that a video is or became; mostly its own.

    Args:
        make: register one where there is none: its tracks or its index are to come.

    Raises:
        RecordNotFound: this tenant has no such video, or nothing was made of it yet.
        Conflict: one is to be registered, and the md5 of the video is not known yet.
    """
    with context.database.read() as connection:
        row = _need(_row_by_id(connection, tenant_id, file_id))
    if row.type != FileType.VIDEO:
        raise RecordNotFound("the file is not a video")
    if row.isobmff_id is not None:
        return str(row.isobmff_id)
    if not make:
        kind = _NOT_MADE.get(row.status, RecordNotFound)
        raise kind("nothing was made of the file yet", more={"state": row.status})
    if row.md5 is None:
        raise Conflict("tracks and indexes need the md5 of the file: announce it with its md5")
    with context.database.write() as connection:
        sent = UNPROCESSED.row(connection, tenant_id, file_id, lock=True)
        return isobmff_file(connection, sent)


def look(context: ServiceContext, tenant_id: str, ids: Sequence[str]) -> dict[str, Event]:
    """How far files are: of images and captions what came of them, of videos how far they are made.

    Returns:
        By id; those that were deleted are missing.
    """
    with context.database.read() as connection:
        return {row.id: _event_of(row) for row in _rows_by_ids(connection, tenant_id, ids)}


def _event_of(row: Row[Any]) -> Event:
    if row.status == AnyFileStatus.READY:
        return "complete", {}
    if row.status == AnyFileStatus.FAILED:
        problem = Problem.of(row.problem or {})
        return "error", problem.model_dump() if problem is not None else {}
    if row.type != FileType.VIDEO:
        return "progress", {"progress": row.next_byte / row.byte_size if row.byte_size else 0}
    return "progress", {"progress": row.progress or 0}


def _tracks(context: ServiceContext, tenant_id: str, row: Row[Any]) -> list[TrackRecord]:
    if row.isobmff_id is None:
        return []
    try:
        return file_with_tracks(context, tenant_id, row.isobmff_id).tracks
    except RecordNotFound:
        return []  # deleted meanwhile


def _need(row: Row[Any] | None) -> Row[Any]:
    if row is None:
        raise RecordNotFound("there is no such file")
    return row


def _record_of(row: Row[Any], tracks: list[TrackRecord] | list[Row[Any]]) -> AnyFile:
    width, height = row.width, row.height
    for track in tracks:
        known: Mapping[str, Any] = track.probe_info or {}
        if width is None and track.type == "video" and track.track_id > 0:
            width, height = known.get("width"), known.get("height")
    failed = row.status == AnyFileStatus.FAILED
    return AnyFile.of_row(
        row,
        width=_pixels(width),
        height=_pixels(height),
        problem=Problem.of(row.problem) if failed else None,
        # of an upload whose bytes were processed before, its own end
        completed_at=rfc3339(row.ready_at and max(row.ready_at, row.sent_at or row.created_at)),
        isobmff_file_id=row.isobmff_id,
        tracks=[FileTrack.of_row(track) for track in tracks],
    )


def _pixels(size: object) -> int | None:
    """A size that a client may have told of its track in any form."""
    return size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else None


_SENT, _MADE = files.c, isobmff_files.c
# Two videos may have one md5; one whose bytes are not known yet is trusted. (In two parts:
# SQLite 3.40 finds no column of the outer query in an ORDER BY.)
_ANY = isobmff_files.alias("any_made").c
_OF_MD5 = sa.select(_ANY.id).where(_ANY.tenant_id == _SENT.tenant_id, _ANY.md5 == _SENT.md5)
_MADE_OF_SENT = sa.func.coalesce(
    *(
        one.correlate(files).scalar_subquery()
        for one in (
            _OF_MD5.where(_ANY.sha256 == _SENT.sha256),
            _OF_MD5.where(_ANY.sha256.is_(None) | _SENT.sha256.is_(None))
            .order_by(
                _ANY.sha256.is_(None).desc(),
                _ANY.index_completed_at.is_not(None).desc(),
                _ANY.id.desc(),
            )
            .limit(1),
        )
    )
)


_IS_VIDEO = _SENT.type == FileType.VIDEO.value


def _sent() -> dict[str, sa.ColumnElement[Any]]:
    """The record of a file, from the rows of the file, its upload, and its results."""
    run = processes.c
    complete = _SENT.completed_at.is_not(None)
    next_byte = sa.func.coalesce(uploads.c.next_byte, 0)
    ready = sa.case((_IS_VIDEO, _MADE.index_completed_at), else_=_SENT.completed_at)
    status = sa.case(
        (ready.is_not(None), AnyFileStatus.READY.value),
        (_SENT.failed_at.is_not(None) | run.failed_at.is_not(None), AnyFileStatus.FAILED.value),
        (run.id.is_not(None) & run.completed_at.is_(None), AnyFileStatus.PROCESSING.value),
        # all bytes are here, and nothing else was requested
        (complete, AnyFileStatus.CREATED.value),
        (next_byte > 0, AnyFileStatus.UPLOADING.value),
        else_=AnyFileStatus.CREATED.value,
    )
    return {
        "type": _SENT.type,
        "status": status,
        "ready_at": ready,
        "sent_at": _SENT.completed_at,
        "byte_size": sa.func.coalesce(_SENT.byte_size, uploads.c.byte_size),
        "next_byte": sa.case((complete, _SENT.byte_size), else_=next_byte),
        "mime_type": _SENT.mime_type,
        "width": _SENT.width,
        "height": _SENT.height,
        "problem": sa.func.coalesce(_SENT.problem, run.problem, type_=sa.JSON),
        "progress": run.progress,
        "isobmff_id": _MADE.id,
    }


def _registered() -> dict[str, sa.ColumnElement[Any]]:
    """The same of an ISOBMFF file whose bytes were not sent: a video."""
    ready = _MADE.index_completed_at.is_not(None)
    # NULL of a type, since in a union databases want to know
    unknown = {name: sa.cast(sa.null(), _SENT[name].type) for name in _ONLY_SENT}
    return {
        **unknown,
        "type": sa.literal(FileType.VIDEO.value),
        "status": sa.case((ready, AnyFileStatus.READY.value), else_=AnyFileStatus.CREATED.value),
        "ready_at": _MADE.index_completed_at,
        "sent_at": sa.cast(sa.null(), _SENT.completed_at.type),
        "next_byte": sa.cast(sa.func.coalesce(_MADE.byte_size, 0), sa.BigInteger),
        "progress": sa.cast(sa.null(), sa.Float),
        "isobmff_id": _MADE.id,
    }


_OWN = ("id", "tenant_id", "filename", "byte_size", "md5", "created_at", "expires_at")
_ONLY_SENT = ("mime_type", "width", "height", "problem")


def _rows(file: Any, more: Mapping[str, sa.ColumnElement[Any]]) -> sa.Select[Any]:
    """Rows of a table, by its own columns and more."""
    every = {**{name: file[name] for name in _OWN}, **more}
    # a union goes by place
    return sa.select(*(every[name].label(name) for name in sorted(every)))


def _sent_rows() -> sa.Select[Any]:
    """Files of all types, what was made of videos, and how far that is."""
    newest = processes.alias("newer").c
    last_run = (
        sa.select(sa.func.max(newest.id))
        .where(newest.unprocessed_file_id == _SENT.id)
        .correlate(files)
        .scalar_subquery()
    )
    own = (uploads.c.family == _SENT.type) & (uploads.c.record_id == _SENT.id)
    return _rows(_SENT, _sent()).select_from(
        files.outerjoin(uploads, own)
        .outerjoin(isobmff_files, _IS_VIDEO & (_MADE.id == _MADE_OF_SENT))
        .outerjoin(processes, _IS_VIDEO & (processes.c.id == last_run))
    )


def _registered_rows(sent: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """ISOBMFF files that no file answers for, and that are not over."""
    now = sa.bindparam("now", callable_=instant, type_=_MADE.expires_at.type)
    going_on = _MADE.expires_at.is_(None) | (_MADE.expires_at > now)
    answered = sa.exists().where(_IS_VIDEO, sent).correlate(isobmff_files)
    return _rows(_MADE, _registered()).where(going_on, ~answered)


_WITH_EACH_ID = (_sent_rows(), _registered_rows(_SENT.id == _MADE.id))
_WITH_EACH_MD5 = (
    _sent_rows(),
    _registered_rows(
        (_SENT.tenant_id == _MADE.tenant_id)
        & (_SENT.md5 == _MADE.md5)
        & ((_SENT.sha256 == _MADE.sha256) | (_MADE.id == _MADE_OF_SENT))
    ),
)


def _union(
    parts: Sequence[sa.Select[Any]],
    tenant_id: str,
    narrowed: Callable[[sa.Select[Any]], sa.Select[Any]],
) -> sa.Subquery:
    """All rows of a tenant; each part is narrowed down by itself, with its own indexes."""
    mine = [part.where(part.selected_columns.tenant_id == tenant_id) for part in parts]
    # a part with an order and a limit stands in a query of its own
    return sa.union_all(*(sa.select(narrowed(one).subquery()) for one in mine)).subquery(
        "all_files"
    )


def _row_by_id(connection: Connection, tenant_id: str, file_id: str) -> Row[Any] | None:
    """The row of an id."""
    return next(iter(_rows_by_ids(connection, tenant_id, [file_id])), None)


def _rows_by_ids(connection: Connection, tenant_id: str, ids: Sequence[str]) -> Sequence[Row[Any]]:
    """The rows of some ids."""
    query = _union(
        _WITH_EACH_ID, tenant_id, lambda part: part.where(part.selected_columns.id.in_(ids))
    )
    return connection.execute(sa.select(query)).all()


def _row_by_md5(connection: Connection, tenant_id: str, md5: bytes) -> Row[Any] | None:
    """The row of an md5; one that is ready before others, then that with most bytes."""
    rows = _union(
        _WITH_EACH_MD5, tenant_id, lambda part: part.where(part.selected_columns.md5 == md5)
    )
    ready = (rows.c.status == AnyFileStatus.READY.value).desc()
    query = sa.select(rows).order_by(ready, rows.c.next_byte.desc(), rows.c.id.desc()).limit(1)
    return connection.execute(query).one_or_none()


def _page_of_rows(
    connection: Connection,
    tenant_id: str,
    limit: int,
    cursor: str | None,
    type_: FileType | None,
    status: AnyFileStatus | None,
) -> pages.RowPage:
    """One page of rows, newest first; raises as `pages.page`."""
    before = None if cursor is None else pages.last_id(cursor)

    def newest(part: sa.Select[Any]) -> sa.Select[Any]:
        column = part.selected_columns
        if before is not None:
            part = part.where(column.id < before)
        if type_ is not None:
            part = part.where(column.type == type_.value)
        if status is not None:
            part = part.where(column.status == status.value)
        return part.order_by(column.id.desc()).limit(limit + 1)

    query = _union(_WITH_EACH_MD5, tenant_id, newest)
    return pages.page(connection, sa.select(query), query, limit, cursor)
