"""ISOBMFF files: what requests and answers say of them, and what can be done; no HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

import sqlalchemy as sa
from pydantic import Field, field_validator
from sqlalchemy.engine import Connection, Row
from typing_extensions import TypeAliasType

from fragdex.errors import Conflict, NotYet, RecordNotFound, UploadIncomplete
from fragdex.record import record
from fragdex.service.context import ServiceContext
from fragdex.service.records import blobs, deletion
from fragdex.service.records.database import insert
from fragdex.service.records.identifiers import instant, md5_bytes, new_id
from fragdex.service.records.tables import files, isobmff_files, isobmff_tracks, processes
from fragdex.service.records.tenant_limits import ensure_within_quota
from fragdex.service.uploads.repository import Repository
from fragdex.service.web.fields import (
    JSON_NUMBER,
    NO_NUL,
    NUMBER_OR_TEXT,
    ApiModel,
    ByteSize,
    FileName,
    Listed,
    Md5Text,
    RequestBody,
)

# Named types have a name in the OpenAPI document, and in the clients that are written after it.
IsobmffFileStatus = TypeAliasType("IsobmffFileStatus", Literal["created", "ready"])
TrackType = TypeAliasType("TrackType", Literal["video", "audio", "text", "metadata", "other"])
ProbeInfo = TypeAliasType("ProbeInfo", dict[str, Any])

MAX_TRACK_ID = 2**31 - 1
"""Of a signed 32-bit column; ids over it are allowed by the standard and not seen."""


class NewFile(RequestBody):
    """A file to register; its index and its tracks follow, or are made from its bytes."""

    md5: Md5Text
    filename: FileName


class FileRecord(ApiModel):
    """A registered file."""

    id: str
    md5: str = Field(description="dashed")
    filename: str
    byte_size: int | None = Field(
        description="of the file itself; null where only tracks or an index are known"
    )
    status: IsobmffFileStatus = Field(description="ready: it has an index")
    fragment_index_complete: bool
    created_at: str
    index_completed_at: str | None
    expires_at: str | None


class FileList(Listed):
    """ISOBMFF files, newest first."""

    isobmff_files: list[FileRecord]


class TrackFacts(RequestBody):
    """The announcement of a track that is a separate file."""

    track_id: Annotated[int, Field(ge=-1, le=MAX_TRACK_ID), NUMBER_OR_TEXT] = Field(
        description="track_ID, as number or text; -1: the scrub track"
    )
    type: TrackType
    byte_size: ByteSize
    duration_ms: Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False), JSON_NUMBER] | None = (
        None
    )
    codec_name: Annotated[str, Field(max_length=40), NO_NUL] | None = None
    probe_info: ProbeInfo | None = Field(
        default=None, description="what the sender knows of the track; given back as it is"
    )

    @field_validator("probe_info")
    @classmethod
    def _without_nul(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        """One database takes no NUL; so none does."""
        # a backslash of the text itself is written twice, and none of NUL's
        if "\\u0000" in json.dumps(value).replace(r"\\", ""):
            raise ValueError("U+0000 cannot be kept")
        return value


class NewTrack(TrackFacts):
    """A track to come, and of which file."""

    file_id: Annotated[str, Field(min_length=1, max_length=36), NO_NUL]


class NewFileTrack(TrackFacts):
    """A track to come, of the file that the path names."""

    file_id: Annotated[str, Field(max_length=36)] | None = Field(
        None, description="tolerated, without effect: the path says it"
    )


class TrackRecord(ApiModel):
    """A track of a file."""

    file_id: str
    track_id: int
    type: str
    codec_name: str | None
    duration_ms: int | None
    byte_size: int | None = Field(description="null for a track that only the index has")
    next_byte: int = Field(description="bytes before this one are here to stay")
    complete: bool
    md5: str | None = Field(description="of the track's own bytes, dashed; null until all are here")
    probe_info: ProbeInfo | None
    created_at: str | None
    completed_at: str | None


class TrackList(ApiModel):
    """The tracks of a file, by their ids."""

    isobmff_tracks: list[TrackRecord]


class FileWithTracks(FileRecord):
    """A registered file and its tracks."""

    tracks: list[TrackRecord]


class Place(ApiModel):
    """Bytes of the track's file, or of the file itself where its tracks are not apart."""

    offset: int
    size: int


class SeekAnswer(ApiModel):
    """Where decoding starts for a moment: the last sync sample at or before it."""

    track: int
    fragment: int = Field(description="row of the track's fragment table, from 0")
    cts: int = Field(
        description="presentation time of the sync sample, edit list applied, in ticks"
    )
    dts: int | None = Field(description="its decode time on the same timeline; null: unknown")
    duration: int | None = Field(description="ticks of the fragment; null: unknown")
    timescale: int = Field(description="ticks a second")
    time_ms: float = Field(description="presentation time of the sync sample")
    offset: int
    size: int
    init: Place = Field(description="the initialization segment, to be fetched once")
    ranges: list[Place] | None = Field(
        default=None,
        description="with end_ms: merged ranges that hold all from here until before it",
    )


@record(frozen=True, slots=True)
class IndexKeys:
    """Which objects of the store are the index of a file; no object ever changes.

    Attributes:
        file: a `.fidx` of the whole file, or None.
        json: the JSON it was sent as, or None.
        tracks: (track id, `.fidx` of the track's own file) of tracks indexed by themselves, which
            stand above what `file` says of the same id.
    """

    file: str | None
    json: str | None
    tracks: tuple[tuple[int, str], ...]


FAMILY = "isobmff"

Found = TypeVar("Found")


def create_file(context: ServiceContext, tenant_id: str, new: NewFile) -> tuple[FileRecord, bool]:
    """Register a file; one of this md5 that is there already, and False.

    Raises:
        QuotaExceeded: the tenant would store too much.
    """
    md5 = md5_bytes(new.md5)
    with context.database.write() as connection:
        row, is_new = register(connection, tenant_id, md5, new.filename)
        if is_new:
            ensure_within_quota(connection, tenant_id)
    return record_of(row), is_new


def register(
    connection: Connection,
    tenant_id: str,
    md5: bytes,
    filename: str,
    *,
    sha256: bytes | None = None,
    **values: Any,
) -> tuple[Row[Any], bool]:
    """The row of the tenant's file of these bytes, and whether it was made now, of these values.

    Args:
        sha256: of the bytes; where it is not known, the file that `file_by_md5` finds is given.
    """
    file, named = isobmff_files.c, {"tenant": tenant_id, "md5": md5}
    row = {"id": new_id(), "created_at": instant(), **values}
    row |= {"tenant_id": tenant_id, "md5": md5, "sha256": sha256, "filename": filename}
    wanted = _BY_MD5.limit(1).with_for_update()
    if sha256 is not None:
        wanted = wanted.where(file.sha256 == sha256)
    existing = connection.execute(wanted, named).first()
    if existing is not None:
        return existing, False
    if sha256 is not None:
        # One that a client has named is of the first bytes that come; not if it is the file of
        # another upload, whose bytes may be others.
        other = sa.exists().where(files.c.id == file.id, file.id != row["id"])
        unknown = (file.tenant_id == tenant_id) & (file.md5 == md5) & file.sha256.is_(None)
        connection.execute(isobmff_files.update().where(unknown, ~other).values(sha256=sha256))
    statement = insert(connection, isobmff_files).values(**row).on_conflict_do_nothing()
    inserted = connection.execute(statement.returning(file.id)).first()
    return connection.execute(wanted, named).one(), inserted is not None


def file_bytes(connection: Connection, file: Row[Any]) -> blobs.Blob | None:
    """The bytes of a file itself, where they were sent; `file` is its row."""
    own = blobs.used_by(connection, file.tenant_id, FAMILY, file.id)
    return own or blobs.of_md5(connection, file.tenant_id, file.md5, file.sha256)


def file_by_md5(context: ServiceContext, tenant_id: str, md5: bytes) -> FileRecord:
    """The file with this md5, one with an index before others, then the newest.

    Raises:
        RecordNotFound: this tenant has none.
    """
    rows = context.database.rows(_BY_MD5, tenant=tenant_id, md5=md5)
    if not rows:
        raise FILES.not_found()
    return record_of(rows[0])


_BY_MD5 = (
    sa.select(isobmff_files)
    .where(
        isobmff_files.c.tenant_id == sa.bindparam("tenant"),
        isobmff_files.c.md5 == sa.bindparam("md5"),
    )
    .order_by(isobmff_files.c.index_completed_at.is_not(None).desc(), isobmff_files.c.id.desc())
)


def own_id(context: ServiceContext, tenant_id: str, file_id: str) -> str:
    """The id of the ISOBMFF file that an id names, mostly the same.

    An upload whose bytes an earlier one had already became that one's ISOBMFF file.
    """
    rows = context.database.rows(_OF_EQUAL, tenant=tenant_id, file=file_id)
    return str(rows[0][0]) if rows else file_id


def by_own_id(
    context: ServiceContext, tenant_id: str, file_id: str, find: Callable[[str], Found]
) -> Found:
    """What `find` gives for an id or, where it knows none, for `own_id`.

    Raises:
        UploadIncomplete: this is an upload whose bytes are not all here.
        NotYet: this is an upload that is being processed.
    """
    try:
        return find(file_id)
    except RecordNotFound as error:
        own = own_id(context, tenant_id, file_id)
        if own != file_id:
            return find(own)
        for completed_at, is_running in context.database.rows(
            _UNMADE, tenant=tenant_id, file=file_id
        ):
            if completed_at is None:
                raise UploadIncomplete("bytes of this upload are missing") from error
            if is_running:
                raise NotYet("this upload is being processed") from error
        raise


_EQUAL = isobmff_files.alias("equal").c
_OF_EQUAL = (
    sa.select(_EQUAL.id)
    .select_from(
        files.join(
            _EQUAL.id.table,
            (_EQUAL.tenant_id == files.c.tenant_id)
            & (_EQUAL.md5 == files.c.md5)
            & (_EQUAL.sha256 == files.c.sha256),
        )
    )
    .where(
        files.c.id == sa.bindparam("file"),
        files.c.tenant_id == sa.bindparam("tenant"),
        ~sa.exists().where(isobmff_files.c.id == files.c.id),
    )
)


# Of an upload that no ISOBMFF file was made of: when its last byte came, whether a process runs.
_UNMADE = sa.select(
    files.c.completed_at,
    sa.exists()
    .where(
        processes.c.unprocessed_file_id == files.c.id,
        processes.c.completed_at.is_(None),
        processes.c.failed_at.is_(None),
    )
    .label("is_running"),
).where(
    files.c.id == sa.bindparam("file"),
    files.c.tenant_id == sa.bindparam("tenant"),
    files.c.type == sa.literal_column("'video'"),
    ~sa.exists().where(isobmff_files.c.id == files.c.id),
)


def delete_file(context: ServiceContext, tenant_id: str, file_id: str) -> None:
    """Delete a file, its tracks, its index and its bytes; raises as `FILES.get`.

    Raises:
        Conflict: it is what another upload of the same bytes became, which still needs it.
    """
    own = own_id(context, tenant_id, file_id)
    if own != file_id:
        raise Conflict(
            "this is what another file of the same bytes became",
            more={"isobmff_file_id": own},
            advice=f"delete this one alone by DELETE of /files/{file_id}",
        )
    with context.database.write() as connection:
        FILES.row(connection, tenant_id, file_id, lock=True)
        deletion.remove(connection, FAMILY, file_id)


def index_keys(context: ServiceContext, tenant_id: str, file_id: str) -> IndexKeys:
    """Where the index of a file is.

    Raises:
        RecordNotFound: this tenant has no such file, or it has no index yet.
    """
    rows = context.database.rows(_KEYS, tenant=tenant_id, file=file_id)
    if not rows:
        raise FILES.not_found()
    tracks = tuple((row[2], row[3]) for row in rows if row[2] is not None)
    if rows[0][0] is None and not tracks:
        raise UploadIncomplete("the file has no index yet")
    return IndexKeys(rows[0][0], rows[0][1], tracks)


# One statement, made once: it is what a seek asks.
_KEYS = (
    sa.select(
        isobmff_files.c.index_key,
        isobmff_files.c.index_json_key,
        isobmff_tracks.c.track_id,
        isobmff_tracks.c.index_key,
    )
    .select_from(
        isobmff_files.outerjoin(
            isobmff_tracks,
            (isobmff_tracks.c.file_id == isobmff_files.c.id)
            & isobmff_tracks.c.index_key.is_not(None),
        )
    )
    .where(
        isobmff_files.c.id == sa.bindparam("file"),
        isobmff_files.c.tenant_id == sa.bindparam("tenant"),
    )
    .order_by(isobmff_tracks.c.track_id)
)


def record_of(row: Any) -> FileRecord:
    """The record of a row."""
    complete = row.index_completed_at is not None
    return FileRecord.of_row(
        row, status="ready" if complete else "created", fragment_index_complete=complete
    )


_INDEXED = isobmff_files.c.index_completed_at.is_not(None)

FILES = Repository(
    isobmff_files,
    "ISOBMFF file",
    lambda _, rows: [record_of(row) for row in rows],
    FileList,
    {"ready": _INDEXED, "created": ~_INDEXED},
)
"""The ISOBMFF files of tenants."""
