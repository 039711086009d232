"""The records of all families as rows of one form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex.service.files.model import AnyFileStatus, FileType
from fragdex.service.records import pages
from fragdex.service.records.identifiers import instant
from fragdex.service.records.tables import (
    caption_files,
    image_files,
    isobmff_files,
    processes,
    unprocessed_files,
    uploads,
)

__all__ = ["by_id", "by_md5", "page"]

_SENT, _MADE = unprocessed_files.c, isobmff_files.c
# Two films may have one md5; one whose bytes are not known yet is taken at its word. (In two parts:
# SQLite 3.40 finds no column of the outer query in an ORDER BY.)
_ANY = isobmff_files.alias("any_made").c
_OF_MD5 = sa.select(_ANY.id).where(_ANY.tenant_id == _SENT.tenant_id, _ANY.md5 == _SENT.md5)
_MADE_OF_SENT = sa.func.coalesce(
    *(
        one.correlate(unprocessed_files).scalar_subquery()
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


# What some families know nothing of: NULL of a type, since in a union databases want to know.
_UNKNOWN: Mapping[str, sa.ColumnElement[Any]] = {
    "mime_type": sa.cast(sa.null(), sa.String(40)),
    "width": sa.cast(sa.null(), sa.Integer),
    "height": sa.cast(sa.null(), sa.Integer),
    "problem": sa.cast(sa.null(), sa.JSON),
    "progress": sa.cast(sa.null(), sa.Float),
    "isobmff_id": sa.cast(sa.null(), sa.String(36)),
}
_OWN = ("id", "tenant_id", "filename", "byte_size", "md5", "created_at", "expires_at")


def _row(
    file: Any, type_: FileType, ready_at: sa.ColumnElement[Any], **known: sa.ColumnElement[Any]
) -> sa.Select[Any]:
    """A row of a family: what its file has, what is `known` beside, and NULL.

    Args:
        file: the columns of its table.
        ready_at: since when it is ready.
    """
    own = {name: file[name] for name in _OWN}
    told = {"type": sa.literal(type_.value), "ready_at": ready_at}
    every = {**_UNKNOWN, **own, **told, **known}
    # a union goes by place
    return sa.select(*(every[name].label(name) for name in sorted(every)))


def _kept_as_they_came(table: sa.Table, family: str, type_: FileType) -> sa.Select[Any]:
    """Images and captions."""
    file = table.c
    complete = file.completed_at.is_not(None)
    next_byte = sa.func.coalesce(uploads.c.next_byte, 0)
    status = sa.case(
        (complete, AnyFileStatus.READY.value),
        (next_byte > 0, AnyFileStatus.UPLOADING.value),
        else_=AnyFileStatus.CREATED.value,
    )
    return _row(
        file,
        type_,
        file.completed_at,
        status=status,
        next_byte=sa.case((complete, file.byte_size), else_=next_byte),
        **{name: file[name] for name in ("mime_type", "width", "height") if name in file},
    ).select_from(
        table.outerjoin(uploads, (uploads.c.family == family) & (uploads.c.record_id == file.id))
    )


def _videos_sent() -> sa.Select[Any]:
    """Unprocessed files, what was made of them, and how far that is."""
    run, newest = processes.c, processes.alias("newer").c
    last_run = (
        sa.select(sa.func.max(newest.id))
        .where(newest.unprocessed_file_id == _SENT.id)
        .correlate(unprocessed_files)
        .scalar_subquery()
    )
    complete = _SENT.completed_at.is_not(None)
    next_byte = sa.func.coalesce(uploads.c.next_byte, 0)
    status = sa.case(
        (_MADE.index_completed_at.is_not(None), AnyFileStatus.READY.value),
        (_SENT.failed_at.is_not(None) | run.failed_at.is_not(None), AnyFileStatus.FAILED.value),
        (run.id.is_not(None) & run.completed_at.is_(None), AnyFileStatus.PROCESSING.value),
        # all bytes are here, and nobody asked for more
        (complete, AnyFileStatus.CREATED.value),
        (next_byte > 0, AnyFileStatus.UPLOADING.value),
        else_=AnyFileStatus.CREATED.value,
    )
    return _row(
        _SENT,
        FileType.VIDEO,
        _MADE.index_completed_at,
        status=status,
        mime_type=_SENT.mime_type,
        next_byte=sa.case((complete, _SENT.byte_size), else_=next_byte),
        problem=sa.func.coalesce(_SENT.problem, run.problem, type_=sa.JSON),
        progress=run.progress,
        isobmff_id=_MADE.id,
    ).select_from(
        unprocessed_files.outerjoin(
            uploads, (uploads.c.family == "unprocessed") & (uploads.c.record_id == _SENT.id)
        )
        .outerjoin(isobmff_files, _MADE.id == _MADE_OF_SENT)
        .outerjoin(processes, run.id == last_run)
    )


def _videos_registered(sent: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """ISOBMFF files that no unprocessed file answers for, and that are not over."""
    now = sa.bindparam("now", callable_=instant, type_=_MADE.expires_at.type)
    going_on = _MADE.expires_at.is_(None) | (_MADE.expires_at > now)
    ready = _MADE.index_completed_at.is_not(None)
    return _row(
        _MADE,
        FileType.VIDEO,
        _MADE.index_completed_at,
        status=sa.case((ready, AnyFileStatus.READY.value), else_=AnyFileStatus.CREATED.value),
        next_byte=sa.cast(sa.func.coalesce(_MADE.byte_size, 0), sa.BigInteger),
        isobmff_id=_MADE.id,
    ).where(going_on, ~sa.exists().where(sent).correlate(isobmff_files))


_AS_THEY_CAME = (
    _kept_as_they_came(image_files, "images", FileType.IMAGE),
    _kept_as_they_came(caption_files, "captions", FileType.CAPTION),
    _videos_sent(),
)
_WITH_EACH_ID = (*_AS_THEY_CAME, _videos_registered(_SENT.id == _MADE.id))
_WITH_EACH_MD5 = (
    *_AS_THEY_CAME,
    _videos_registered(
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
    return sa.union_all(*(sa.select(narrowed(one).subquery()) for one in mine)).subquery("files")


def by_id(connection: Connection, tenant_id: str, file_id: str) -> Row[Any] | None:
    """The row of an id."""
    return next(iter(by_ids(connection, tenant_id, [file_id])), None)


def by_ids(connection: Connection, tenant_id: str, ids: Sequence[str]) -> Sequence[Row[Any]]:
    """The rows of some ids."""
    files = _union(
        _WITH_EACH_ID, tenant_id, lambda part: part.where(part.selected_columns.id.in_(ids))
    )
    return connection.execute(sa.select(files)).all()


def by_md5(connection: Connection, tenant_id: str, md5: bytes) -> Row[Any] | None:
    """The row of an md5; one that is ready before others, then the newest."""
    files = _union(
        _WITH_EACH_MD5, tenant_id, lambda part: part.where(part.selected_columns.md5 == md5)
    )
    ready = (files.c.status == AnyFileStatus.READY.value).desc()
    query = sa.select(files).order_by(ready, files.c.id.desc()).limit(1)
    return connection.execute(query).one_or_none()


def page(
    connection: Connection,
    tenant_id: str,
    limit: int,
    cursor: str | None,
    type_: FileType | None,
    status: AnyFileStatus | None,
) -> pages.Page:
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

    files = _union(_WITH_EACH_MD5, tenant_id, newest)
    return pages.page(connection, sa.select(files), files, limit, cursor)
