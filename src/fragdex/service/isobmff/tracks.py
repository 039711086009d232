"""What can be done with the tracks of a file whose bytes are files of their own; no HTTP.

`file_with_tracks` is a file and all that is known of its tracks, from one read.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from fractions import Fraction
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

import fragdex
from fragdex import Track
from fragdex.errors import (
    BudgetExceeded,
    BytesMissing,
    InvalidRequest,
    Obstructed,
    RecordNotFound,
    TooLarge,
)
from fragdex.formats.sample_csv import whole_ticks
from fragdex.fragments.table import NULL
from fragdex.sandbox.folders import OwnFolder
from fragdex.service.context import ServiceContext
from fragdex.service.indexing.child import true_time, verified
from fragdex.service.indexing.isolated import IN_THREAD, run_isolated
from fragdex.service.isobmff import operations
from fragdex.service.isobmff.opened import Opened, alone, chosen_track, opened
from fragdex.service.isobmff.operations import (
    FILES,
    FileWithTracks,
    IndexKeys,
    NewTrack,
    Place,
    SeekAnswer,
    TrackList,
    TrackRecord,
    file_bytes,
    index_keys,
)
from fragdex.service.records import deletion
from fragdex.service.records.blobs import Blob, StoredBytes, used_by
from fragdex.service.records.database import insert
from fragdex.service.records.identifiers import instant
from fragdex.service.records.tables import blob_uses, blobs, isobmff_files, isobmff_tracks, uploads
from fragdex.service.records.tenant_limits import ensure_within_quota
from fragdex.service.uploads.model import Arrival, Arrived
from fragdex.service.uploads.operations import begin, no_bytes

FAMILY = "tracks"

_NOT_FOUND = "there is no such track"


# Without parameters, so that it may be part of a fast read.
_NAME = (
    isobmff_tracks.c.file_id
    + sa.literal_column("'/'", sa.String)
    + sa.cast(isobmff_tracks.c.track_id, sa.String)
)
_FAMILY: sa.ColumnClause[str] = sa.literal_column(f"'{FAMILY}'")
OWN_UPLOAD = (uploads.c.family == _FAMILY) & (uploads.c.record_id == _NAME)
"""Joins a track with its upload; those that were made here had none."""

OWN_BYTES = (
    (blob_uses.c.tenant_id == isobmff_tracks.c.tenant_id)
    & (blob_uses.c.family == _FAMILY)
    & (blob_uses.c.record_id == _NAME)
)
"""Joins a track with its use of bytes, where all of them are here."""

OF_USE = (blobs.c.tenant_id == blob_uses.c.tenant_id) & (blobs.c.sha256 == blob_uses.c.sha256)
"""Joins a use with the bytes."""


def track_name(file_id: str, track_id: int) -> str:
    """What uploads and uses of bytes call a track."""
    return f"{file_id}/{track_id}"


def create_track(
    context: ServiceContext, tenant_id: str, new: NewTrack
) -> tuple[TrackRecord, bool]:
    """Announce the bytes of a track; the track that is there already, and False.

    Raises:
        RecordNotFound: this tenant has no such file.
        TooLarge: more bytes than a track may have.
        Obstructed: the track is there with another number of bytes.
    """
    limit = context.settings.max_track_bytes
    if new.byte_size > limit:
        raise TooLarge(f"a track has at most {limit} bytes", more={"limit": int(limit)})
    track = isobmff_tracks.c
    name = track_name(new.file_id, new.track_id)
    empty = no_bytes(context, tenant_id, FAMILY, name, new.byte_size, None, ARRIVAL)
    with context.database.write() as connection:
        FILES.row(connection, tenant_id, new.file_id, lock=True)
        row = {
            "file_id": new.file_id,
            "track_id": new.track_id,
            "tenant_id": tenant_id,
            "type": new.type,
            "probe_info": new.probe_info,
            "duration_ms": None if new.duration_ms is None else round(new.duration_ms),
            "codec_name": new.codec_name,
            "byte_size": new.byte_size,
            "created_at": instant(),
        }
        statement = insert(connection, isobmff_tracks).values(**row).on_conflict_do_nothing()
        is_new = connection.execute(statement.returning(track.track_id)).first() is not None
        if is_new:
            ensure_within_quota(connection, tenant_id)
            begin(context, connection, tenant_id, FAMILY, name, new.byte_size, None, ARRIVAL, empty)
        here = (track.file_id == new.file_id) & (track.track_id == new.track_id)
        existing = connection.execute(_with_upload().where(here)).one()
        if existing.byte_size != new.byte_size:
            raise Obstructed(
                f"track {new.track_id} is there with {existing.byte_size} bytes; delete it first",
                more={"byte_size": existing.byte_size},
            )
    return record_of(existing), is_new


def _finished(connection: Connection, arrived: Arrived) -> None:
    file_id, _, track_id = arrived.record_id.partition("/")
    track = isobmff_tracks.c
    connection.execute(
        isobmff_tracks.update()
        .where(track.file_id == file_id, track.track_id == int(track_id))
        .values(md5=arrived.md5, completed_at=instant())
    )


ARRIVAL = Arrival(finished=_finished)
"""How the bytes of a track are taken."""


def track_by_id(
    context: ServiceContext, tenant_id: str, file_id: str, track_id: int
) -> TrackRecord:
    """A track.

    Raises:
        RecordNotFound: this tenant has no such track.
    """
    with context.database.read() as connection:
        return record_of(_need_track(connection, tenant_id, file_id, track_id))


def list_tracks(context: ServiceContext, tenant_id: str, file_id: str) -> TrackList:
    """The tracks of a file whose bytes are announced.

    Raises:
        RecordNotFound: this tenant has no such file.
    """
    track = isobmff_tracks.c
    with context.database.read() as connection:
        FILES.row(connection, tenant_id, file_id)
        query = _with_upload().where(track.file_id == file_id).order_by(track.track_id)
        return TrackList(isobmff_tracks=[record_of(row) for row in connection.execute(query)])


def track_bytes(
    context: ServiceContext, tenant_id: str, file_id: str, track_id: int
) -> StoredBytes:
    """Where the bytes of a track are.

    Raises:
        RecordNotFound: this tenant has no such track.
        BytesMissing: not all of them are here.
    """
    rows = context.database.rows(_BYTES, tenant=tenant_id, file=file_id, track=track_id)
    if not rows:
        raise RecordNotFound(_NOT_FOUND)
    (row,) = rows
    if row.store_key is None:
        raise BytesMissing("bytes of this track are missing", more={"state": "uploading"})
    kind = row.type if row.type in ("video", "audio") else "application"
    return StoredBytes(
        row.store_key, row.byte_size, bytes(row.md5), bytes(row.sha256), f"{kind}/mp4"
    )


def blob_of_track(
    connection: Connection, tenant_id: str, file_id: str, track_id: int
) -> tuple[Blob, bool]:
    """The bytes that hold a track, and whether they are a file of its own.

    Raises:
        RecordNotFound: this tenant has no such file.
        BytesMissing: they are not here, or not all of them.
    """
    row = isobmff_tracks.c
    mine = (row.tenant_id == tenant_id) & (row.file_id == file_id) & (row.track_id == track_id)
    own = connection.execute(sa.select(row.md5).where(mine)).one_or_none()
    if own is not None:
        blob = used_by(connection, tenant_id, FAMILY, track_name(file_id, track_id))
    else:
        blob = file_bytes(connection, FILES.row(connection, tenant_id, file_id))
    if blob is None:
        raise BytesMissing(f"bytes of track {track_id} are missing", more={"state": "uploading"})
    return blob, own is not None


# One statement, made once: every range that a player fetches asks it.
_BYTES = (
    sa.select(
        isobmff_tracks.c.type, blobs.c.store_key, blobs.c.byte_size, blobs.c.md5, blobs.c.sha256
    )
    .select_from(isobmff_tracks.outerjoin(blob_uses, OWN_BYTES).outerjoin(blobs, OF_USE))
    .where(
        isobmff_tracks.c.tenant_id == sa.bindparam("tenant"),
        isobmff_tracks.c.file_id == sa.bindparam("file"),
        isobmff_tracks.c.track_id == sa.bindparam("track"),
    )
)


def delete_track(context: ServiceContext, tenant_id: str, file_id: str, track_id: int) -> None:
    """Delete a track and its bytes; raises as `track_by_id`."""
    with context.database.write() as connection:
        FILES.row(connection, tenant_id, file_id, lock=True)
        if not deletion.remove(connection, FAMILY, track_name(file_id, track_id)):
            raise RecordNotFound(_NOT_FOUND)


def _need_track(connection: Connection, tenant_id: str, file_id: str, track_id: int) -> Row[Any]:
    track = isobmff_tracks.c
    query = _with_upload().where(
        track.tenant_id == tenant_id, track.file_id == file_id, track.track_id == track_id
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        raise RecordNotFound(_NOT_FOUND)
    return row


def _with_upload() -> sa.Select[Any]:
    return sa.select(isobmff_tracks, uploads.c.next_byte).select_from(
        isobmff_tracks.outerjoin(uploads, OWN_UPLOAD)
    )


def record_of(row: Any) -> TrackRecord:
    """The record of a row of a track and its upload."""
    complete = row.completed_at is not None
    next_byte = row.byte_size if complete else row.next_byte
    return TrackRecord.of_row(row, next_byte=next_byte or 0, complete=complete)


def record_of_indexed(file_id: str, track: Track) -> TrackRecord:
    """The record of a track that only the index has."""
    start, end = track.start, track.stop
    lasts = None if start is None or end is None else round((end.fraction - start.fraction) * 1000)
    return TrackRecord(
        file_id=file_id,
        track_id=track.id,
        type=track.kind,
        codec_name=track.codec,
        duration_ms=lasts,
        byte_size=None,
        next_byte=0,
        complete=False,
        md5=None,
        probe_info=None,
        created_at=None,
        completed_at=None,
    )


_OF_TRACK = (*isobmff_tracks.c, uploads.c.next_byte)
_Row = namedtuple("_Row", [column.name for column in _OF_TRACK])  # type: ignore[misc]
_track: Callable[[Iterable[Any]], Any] = _Row._make

# One statement, made once. Both tables have columns of the same names.
_WHOLE = (
    sa.select(isobmff_files, *(column.label(f"of_track_{column.name}") for column in _OF_TRACK))
    .select_from(
        isobmff_files.outerjoin(
            isobmff_tracks, isobmff_tracks.c.file_id == isobmff_files.c.id
        ).outerjoin(uploads, OWN_UPLOAD)
    )
    .where(
        isobmff_files.c.id == sa.bindparam("file"),
        isobmff_files.c.tenant_id == sa.bindparam("tenant"),
    )
    .order_by(isobmff_tracks.c.track_id)
)


def file_with_tracks(context: ServiceContext, tenant_id: str, file_id: str) -> FileWithTracks:
    """The file of this id; its tracks are those announced, and those that only the index has.

    Raises:
        RecordNotFound: this tenant has none.
        SourceNotFound, DamagedIndex: as `opened`.
    """
    rows = context.database.rows(_WHOLE, tenant=tenant_id, file=file_id)
    keys = _keys(rows)
    return _file_record_of(rows, None if keys is None else opened(context, keys))


def _tracks(rows: Sequence[Any]) -> list[Any]:
    tracks = [_track(row[-len(_OF_TRACK) :]) for row in rows]
    return [track for track in tracks if track.track_id is not None]


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


def _file_record_of(rows: Sequence[Any], ready: Opened | None) -> FileWithTracks:
    record = operations.record_of(rows[0])
    known = [record_of(track) for track in _tracks(rows)]
    if ready is not None:
        ids = {track.track_id for track in known}
        more = (track for track in ready.index.tracks if track.id not in ids)
        known += [record_of_indexed(record.id, track) for track in more]
    known.sort(key=lambda track: track.track_id)
    return FileWithTracks(**dict(record), tracks=known)


# Which bytes a moment of a track needs, by its index; or, verified, by the pictures themselves.
#
# A stranger's boxes say where pictures are. What reads few bytes is done in a thread; what reads
# more, in a process of its own.


def verified_time(
    context: ServiceContext,
    tenant_id: str,
    file_id: str,
    keys: IndexKeys,
    track: Track,
    time: Fraction,
) -> Fraction:
    """The presentation time of the true sync sample for a moment of a track of a file.

    Args:
        keys: of the file's index; `track` is one of it.

    Raises: as `seek` with `verified`.
    """
    with context.database.read() as connection:
        blob, apart = blob_of_track(connection, tenant_id, file_id, track.id)
    index = alone(context, keys, track.id, apart)
    # What came as JSON, or is not exact, does not say where samples are.
    known = index.exact and (keys.json is None or track.id in dict(keys.tracks))
    if known or blob.byte_size <= IN_THREAD:
        with suppress(BudgetExceeded), context.store.source(blob.store_key) as source:
            source.max_bytes = IN_THREAD
            index = index if known else fragdex.index(source, exact=True)
            return true_time(index, source, track.id, track.kind, time)
    with ExitStack() as stack:
        lent = []
        if known:
            path = stack.enter_context(OwnFolder()) / "known.fidx"
            index.save(path)
            lent.append(stack.enter_context(path.open("rb")).fileno())
        answer = run_isolated(
            context, tenant_id, blob.store_key, blob.byte_size, verified, lent=lent,
            track=track.id, kind=track.kind, time=str(time),
        )  # fmt: skip
    return Fraction(answer["time"])


def seek(
    context: ServiceContext,
    tenant_id: str,
    file_id: str,
    track_id: int | None,
    time_ms: float,
    end_ms: float | None = None,
    verified: bool = False,
) -> SeekAnswer:
    """Where decoding starts for a moment, and, with `end_ms`, all bytes until before that.

    Args:
        verified: look at the bytes of the track, and go back to a sample that a decoder can start
            at, whatever its flags say.

    Raises:
        RecordNotFound: this tenant has no such file, or it has no index yet.
        NotReady: with `verified`: the bytes of the track are not here.
        UnverifiedSync: with `verified`: they do not say it.
        Unprocessable, Unavailable: with `verified`: as `run_isolated`.
        TrackNotFound: it has no such track.
        NoSyncSample: decoding of the track can start nowhere.
        InvalidRequest: the end lies before the start.
    """
    keys = index_keys(context, tenant_id, file_id)
    ready = opened(context, keys)
    track = chosen_track(ready.index, track_id)
    time = Fraction(time_ms) / 1000
    if verified:
        time = verified_time(context, tenant_id, file_id, keys, track, time)
    hit = track.seek(time)
    shift = whole_ticks(hit.shift)
    duration = int(track.fragments.duration[hit.fragment])
    init = ready.inits[track.period]
    answer = SeekAnswer(
        track=hit.track,
        fragment=hit.fragment,
        cts=hit.cts + shift,
        dts=None if hit.dts is None else hit.dts + shift,
        duration=None if duration == NULL else duration,
        timescale=hit.timescale,
        time_ms=round(float(hit.time.fraction * 1000), 3),
        offset=hit.offset,
        size=hit.size,
        init=Place(offset=init.start, size=init.size),
    )
    if end_ms is not None:
        if end_ms < time_ms:
            raise InvalidRequest(
                "the span ends before it starts", pointer="end_ms", expected=f"at least {time_ms}"
            )
        stop = max(time, Fraction(end_ms) / 1000)
        span = ready.index.span(time, stop, tracks=[track.id])
        answer.ranges = [Place(offset=part.start, size=part.size) for part in span.media]
    return answer
