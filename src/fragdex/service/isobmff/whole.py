"""A file and all that is known of its tracks, from one read."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from fragdex.service.context import ServiceContext
from fragdex.service.isobmff import operations, tracks
from fragdex.service.isobmff.model import FileWithTracks, IndexKeys
from fragdex.service.isobmff.opened import Opened, opened
from fragdex.service.records.tables import isobmff_files, isobmff_tracks, uploads

__all__ = ["file_with_tracks"]

_OF_TRACK = (*isobmff_tracks.c, uploads.c.next_byte)
_Row = namedtuple("_Row", [column.name for column in _OF_TRACK])  # type: ignore[misc]
_track: Callable[[Iterable[Any]], Any] = _Row._make

# One statement, made once. Both tables have columns of the same names.
_WHOLE = (
    sa.select(isobmff_files, *(column.label(f"of_track_{column.name}") for column in _OF_TRACK))
    .select_from(
        isobmff_files.outerjoin(
            isobmff_tracks, isobmff_tracks.c.file_id == isobmff_files.c.id
        ).outerjoin(uploads, tracks.OWN_UPLOAD)
    )
    .where(
        isobmff_files.c.id == sa.bindparam("file"),
        isobmff_files.c.tenant_id == sa.bindparam("tenant"),
    )
    .order_by(isobmff_tracks.c.track_id)
)


def file_with_tracks(context: ServiceContext, tenant_id: str, file_id: str) -> FileWithTracks:
    """The file of this id; its tracks are those announced, and those the index alone tells of.

    Raises:
        RecordNotFound: this tenant has none.
        SourceNotFound, DamagedIndex: as `opened`.
    """
    rows = context.database.rows(_WHOLE, tenant=tenant_id, file=file_id)
    keys = _keys(rows)
    return _record_of(rows, None if keys is None else opened(context, keys))


def _tracks(rows: Sequence[Any]) -> list[Any]:
    found = [_track(row[-len(_OF_TRACK) :]) for row in rows]
    return [track for track in found if track.track_id is not None]


def _keys(rows: Sequence[Any]) -> IndexKeys | None:
    """Where the index is; None where there is none yet."""
    if not rows:
        raise operations.FILES.not_found()
    apart = tuple(
        (track.track_id, track.index_key) for track in _tracks(rows) if track.index_key is not None
    )
    if rows[0].index_key is None and not apart:
        return None
    return IndexKeys(rows[0].index_key, rows[0].index_json_key, apart)


def _record_of(rows: Sequence[Any], ready: Opened | None) -> FileWithTracks:
    record = operations.record_of(rows[0])
    known = [tracks.record_of(track) for track in _tracks(rows)]
    if ready is not None:
        ids = {track.track_id for track in known}
        more = (track for track in ready.index.tracks if track.id not in ids)
        known += [tracks.record_of_indexed(record.id, track) for track in more]
    known.sort(key=lambda track: track.track_id)
    return FileWithTracks(**dict(record), tracks=known)
