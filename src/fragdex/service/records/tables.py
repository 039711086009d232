"""All tables of the service. Migrations make them; a test holds the two equal.

| Table | A row is |
|---|---|
| tenants | an organisation; every record below belongs to one |
| keys | an API key; only a hash of its secret |
| rates | how far a key has used its rate |
| schema | one: the oldest version whose processes may run on these tables |
| secrets | what this installation signs and hashes with, made on first start |
| blobs | bytes in the store, once per tenant and SHA-256 |
| blob_uses | a record that needs a blob; without one, and none composed of it, the bytes go |
| derived_files | what was made of stored bytes when it was requested, such as a picture |
| trash | an object of the store that no record names any more, until it is deleted |
| uploads | bytes on their way in, one per record that takes bytes |
| tus_uploads | what tus has to remember of an upload, and parts that one is put together of |
| files | an image, captions or a video, as it was sent or is to be sent |
| isobmff_files, isobmff_tracks | what a video became, or is known by: its index, its tracks |
| processes | the making of an ISOBMFF file from a video |
| timelines | several ISOBMFF files, one after the other |
| renders | a page that is, or was, rendered |
| render_parts | a slice of a render: how far it is, and which kept slice it became |
| render_slices | frames kept for any render that would make the same ones |
| transcriptions | what is, or was, heard in a track |
| transcription_slices | a slice of a transcription, and the words of it |
| transcription_speakers | who speaks when in a transcription that tells, and their names |
| replays | answers kept for requests that come again with their Idempotency-Key |
| jobs | work that was requested: how often it was begun, and whether it is still wanted |
| executors | a worker process that is alive, by the database's clock |
| turns | whose work is next in a queue: the next number of each tenant |
| webhooks | a URL that is sent the events of a tenant |
| webhook_deliveries | an event that is, or was, sent to a webhook |

Identifiers are UUIDv7 texts, they sort by time. md5 and sha256 are raw bytes. Instants are UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Computed,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    text,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

PREFIX = "fragdex_"
# Named constraints, so that migrations can name what they change on every database.
metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class Instant(TypeDecorator[datetime]):
    """A UTC instant. SQLite keeps no zone: it is taken off and put back."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """An aware instant for the database."""
        if value is None:
            return None
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """An aware instant from the database."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def table(name: str, *parts: Any, indexes: Sequence[str] = ()) -> Table:
    """A table of the service, by its name without the prefix; an index is given by its columns."""
    made = Table(PREFIX + name, metadata, *parts)
    for index in indexes:
        Index(None, *(made.c[column] for column in index.split()))
    return made


def own_id() -> Column[str]:
    """The UUIDv7 of a record."""
    return Column("id", String(36), primary_key=True)


def of(table: str, name: str, **more: Any) -> Column[str]:
    """The record of another table that a row goes with."""
    key = ForeignKey(f"{PREFIX}{table}.id", ondelete="CASCADE")
    return Column(name, String(36), key, nullable=False, **more)


def of_tenant(**more: Any) -> Column[str]:
    """Whose a record is; it goes with its tenant."""
    return of("tenants", "tenant_id", **more)


def at(name: str, *, needed: bool = False) -> Column[datetime]:
    """An instant; `needed`: never null."""
    return Column(name, Instant, nullable=not needed)


def md5(name: str = "md5", *, needed: bool = False) -> Column[bytes]:
    """A digest; `needed`: never null."""
    return Column(name, LargeBinary(16), nullable=not needed)


def sha256() -> Column[bytes]:
    """What tells bytes of one md5 apart; null until it is known."""
    return Column("sha256", LargeBinary(32))


def row_bytes(*names: str, json: Sequence[str] = ()) -> Column[int]:
    """What a row of a tenant counts with; the database works it out, whoever writes the row.

    Args:
        names: its columns of no set length: texts and bytes. 256 more stand for the rest.
        json: those of JSON.
    """
    return Column("row_bytes", BigInteger, Computed(RowBytes(names, json), persisted=True))


class RowBytes(FunctionElement[int]):
    """The sum of `row_bytes`, in the words of each database."""

    inherit_cache = False

    def __init__(self, names: Sequence[str], json: Sequence[str]) -> None:
        super().__init__()
        self.names, self.json = names, json


@compiles(RowBytes)
def _row_bytes_of_postgresql(element: RowBytes, compiler: Any, **_: Any) -> str:
    texts = [*element.names, *(f"CAST({name} AS TEXT)" for name in element.json)]
    return " + ".join(["256", *(f"coalesce(octet_length({text}), 0)" for text in texts)])


@compiles(RowBytes, "sqlite")
def _row_bytes_of_sqlite(element: RowBytes, compiler: Any, **_: Any) -> str:
    names = [*element.names, *element.json]
    return " + ".join(["256", *(f"coalesce(length(CAST({n} AS BLOB)), 0)" for n in names)])


@compiles(Computed, "sqlite")
def _computed_of_sqlite(element: Computed, compiler: Any, **_: Any) -> str:
    # what is stored cannot be added to a table that is there; its index has the number
    text = compiler.sql_compiler.process(element.sqltext, include_table=False, literal_binds=True)
    return f"GENERATED ALWAYS AS ({text}) VIRTUAL"


tenants = table(
    "tenants",
    own_id(),
    Column("name", Text, nullable=False, unique=True),
    # its own limits; null: those of the settings
    Column("max_stored_bytes", BigInteger),
    Column("max_render_seconds", Float),
    Column("max_render_cost", Float),
    Column("max_jobs", Integer),
    Column("retention_days", Float),
    at("created_at", needed=True),
)

keys = table(
    "keys",
    own_id(),
    of_tenant(),
    # HMAC-SHA-256 of the secret, keyed by secrets["api-keys"]
    Column("secret_hash", LargeBinary(32), nullable=False),
    # what it is for
    Column("name", Text, nullable=False, default=""),
    # `read`, `write` or `admin`; each includes those before it
    Column("scope", String(10), nullable=False, default="write"),
    at("created_at", needed=True),
    at("expires_at"),
    at("revoked_at"),
    # to a minute
    at("last_used_at"),
    # the secret before the last rotation, and how long it is still accepted
    Column("previous_hash", LargeBinary(32)),
    at("previous_until"),
)

rates = table(
    "rates",
    Column("key_id", String(36), primary_key=True),
    # seconds since 1970, by the database's clock
    Column("full_at", Float, nullable=False),
)
"""How far each key has used its rate; on PostgreSQL without a log (UNLOGGED)."""

secrets = table(
    "secrets",
    Column("name", String(40), primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

schema = table(
    "schema",
    Column("version", String(10), primary_key=True),
    Column("compatible_since", String(10), nullable=False),
)
"""One row: the version of the tables, and the oldest whose processes may run on them."""

replays = table(
    "replays",
    of_tenant(primary_key=True),
    Column("key", String(255), primary_key=True),
    # sha256 of method, path and body
    Column("request_hash", LargeBinary(32), nullable=False),
    Column("status", Integer),  # null while the first request runs
    Column("headers", JSON),
    Column("body", LargeBinary),
    at("created_at", needed=True),
    # while the first request runs, its process moves this forward
    at("alive_until"),
    row_bytes("body", json=["headers"]),
    indexes=["tenant_id row_bytes", "created_at"],
)


blobs = table(
    "blobs",
    of_tenant(primary_key=True),
    Column("sha256", LargeBinary(32), primary_key=True),
    md5(needed=True),
    Column("byte_size", BigInteger, nullable=False),
    Column("store_key", Text, nullable=False),
    # of its object: less than byte_size where that is composed
    Column("stored_bytes", BigInteger, nullable=False),
    # of the bytes that its object is composed of, which stay as long; null: of none
    Column("source_sha256", LargeBinary(32)),
    at("created_at", needed=True),
    # what a tenant stores is summed up from the index of `stored_bytes` alone
    indexes=["store_key", "tenant_id md5", "tenant_id stored_bytes", "tenant_id source_sha256"],
)

blob_uses = table(
    "blob_uses",
    of_tenant(primary_key=True),
    Column("sha256", LargeBinary(32), primary_key=True),
    # the family, and the record's id ("ID" or "ID/TRACK")
    Column("family", String(20), primary_key=True),
    Column("record_id", String(60), primary_key=True),
    indexes=["family record_id"],
)

derived_files = table(
    "derived_files",
    own_id(),
    of_tenant(),
    # of the bytes that it was made of, and goes with
    Column("source_sha256", LargeBinary(32), nullable=False),
    # what was made, and which of its files this is
    Column("recipe", String(200), nullable=False),
    Column("part", String(40), nullable=False),
    Column("media_type", String(40), nullable=False),
    at("created_at", needed=True),
    at("expires_at", needed=True),
    indexes=["expires_at"],
)

trash = table(
    "trash",
    Column("store_key", Text, primary_key=True),
    at("delete_after", needed=True),
    # when a record let it go; null where it is to be written
    at("let_go_at"),
    # from here on nobody may name it any more
    at("deleting_at"),
    indexes=["delete_after"],
)

uploads = table(
    "uploads",
    Column("family", String(20), primary_key=True),
    Column("record_id", String(60), primary_key=True),
    of_tenant(),
    # null while nobody has said it
    Column("byte_size", BigInteger),
    md5(),  # what the bytes must have; unknown for images sent without one
    sha256(),  # of the bytes; known from the moment when the last one is here
    # bytes 0..next_byte are durable in the store's draft
    Column("next_byte", BigInteger, nullable=False, default=0),
    Column("draft", Text, nullable=False),
    # what the draft becomes; known with the SHA-256
    Column("object_key", Text),
    Column("lease_holder", String(36)),
    at("lease_until"),
    # when next_byte moved last
    at("written_at"),
    at("created_at", needed=True),
    at("completed_at"),
    indexes=["draft", "tenant_id completed_at"],
)

Index(
    None,
    derived_files.c.tenant_id,
    derived_files.c.source_sha256,
    derived_files.c.recipe,
    derived_files.c.part,
    unique=True,
)


tus_uploads = table(
    "tus_uploads",
    # of a part, or of the file that is uploaded
    own_id(),
    of_tenant(),
    Column("filename", Text, nullable=False),
    Column("mime_type", String(40), nullable=False),
    Column("byte_size", BigInteger),
    md5(),
    # Upload-Metadata and Upload-Concat as they were sent
    Column("metadata", Text),
    Column("concat", Text),
    # whether the record of the file was made for this upload: it goes where nobody finishes it
    Column("made_file", Boolean, nullable=False, default=False),
    at("created_at", needed=True),
    at("completed_at"),
    at("expires_at", needed=True),
    row_bytes("filename", "metadata", "concat"),
    indexes=["tenant_id row_bytes", "expires_at", "tenant_id id", "tenant_id md5"],
)


class FileType(StrEnum):
    """What a file is."""

    VIDEO = "video"
    IMAGE = "image"
    CAPTION = "caption"


files = table(
    "files",
    own_id(),
    of_tenant(),
    # a `FileType`; each has an address of its own next to `/files`
    Column("type", String(10), nullable=False),
    Column("filename", Text, nullable=False),
    # null for a video: what it is turns out when it is read
    Column("mime_type", String(40)),
    # null until it is announced, or all bytes are here
    Column("byte_size", BigInteger),
    md5(),
    sha256(),  # of a video, once all bytes are here
    # of an image: pixels
    Column("width", Integer),
    Column("height", Integer),
    # a video of `/files` is processed by itself once its last byte is in
    Column("process_when_complete", Boolean, nullable=False, default=False),
    # what the library's Indexer found while a video arrived: a stored .fidx, or nothing
    Column("index_key", Text),
    Column("problem", JSON),
    at("created_at", needed=True),
    at("completed_at"),
    at("failed_at"),
    at("expires_at"),
    row_bytes("filename", json=["problem"]),
    indexes=[
        "tenant_id id",
        "tenant_id md5",
        "tenant_id row_bytes",
        "expires_at",
        "tenant_id type id",
    ],
)

isobmff_files = table(
    "isobmff_files",
    own_id(),
    of_tenant(),
    Column("filename", Text, nullable=False),
    md5(needed=True),
    sha256(),  # null where a client has named the file by its md5, and no bytes are known
    # of the bytes that this file is itself; null where only tracks or an index are known
    Column("byte_size", BigInteger),
    # the whole file's index: .fidx in the store, and the JSON it was sent as, unknown keys kept
    Column("index_key", Text),
    Column("index_json_key", Text),
    at("index_completed_at"),
    at("created_at", needed=True),
    at("expires_at"),
    row_bytes("filename"),
    indexes=["tenant_id id", "tenant_id md5", "tenant_id row_bytes", "expires_at"],
)

isobmff_tracks = table(
    "isobmff_tracks",
    of("isobmff_files", "file_id", primary_key=True),
    Column("track_id", Integer, primary_key=True),  # -1: the scrub track
    of_tenant(),
    Column("type", String(10), nullable=False),
    Column("probe_info", JSON),
    Column("duration_ms", BigInteger),
    Column("codec_name", String(40)),
    Column("byte_size", BigInteger),
    md5(),
    Column("index_key", Text),  # .fidx of the track's own file
    at("created_at", needed=True),
    at("completed_at"),
    row_bytes(json=["probe_info"]),
    indexes=["tenant_id row_bytes"],
)

processes = table(
    "processes",
    own_id(),
    of_tenant(),
    of("files", "unprocessed_file_id"),
    Column("isobmff_file_id", String(36)),
    Column("progress", Float, nullable=False, default=0.0),
    Column("problem", JSON),
    at("created_at", needed=True),
    at("started_at"),
    at("completed_at"),
    at("failed_at"),
    # they go with their tenant
    indexes=["unprocessed_file_id", "tenant_id"],
)

repairs = table(
    "repairs",
    own_id(),
    of_tenant(),
    of("files", "file_id"),
    # as the request said: the good file, and the rate
    Column("wanted", JSON, nullable=False),
    # the good file that is used; it may be deleted later
    Column("like_file_id", String(36)),
    # a file of its own, too
    Column("repaired_file_id", String(36)),
    Column("report", JSON),
    Column("progress", Float, nullable=False, default=0.0),
    Column("problem", JSON),
    at("created_at", needed=True),
    at("started_at"),
    at("completed_at"),
    at("failed_at"),
    row_bytes(json=["wanted", "report", "problem"]),
    indexes=["file_id", "tenant_id id", "tenant_id row_bytes"],
)

timelines = table(
    "timelines",
    own_id(),
    of_tenant(),
    Column("name", Text, nullable=False),
    # ids of ISOBMFF files in their order; one may be deleted later
    Column("files", JSON, nullable=False),
    Column("gaps", String(10), nullable=False),  # "keep" or "close"
    at("created_at", needed=True),
    at("expires_at"),
    row_bytes("name", json=["files"]),
    indexes=["tenant_id id", "tenant_id row_bytes", "expires_at"],
)

# One record per tenant and bytes, and one per md5 whose bytes are not known: creating it again
# answers with the one that is there. (A video may come without its md5, and turn out to be a
# second one of the same bytes.)
_OF_MD5 = (isobmff_files.c.tenant_id, isobmff_files.c.md5)
_UNKNOWN = isobmff_files.c.sha256.is_(None)
Index(None, *_OF_MD5, isobmff_files.c.sha256, unique=True)
Index(
    f"ix_{PREFIX}isobmff_files_unknown",
    *_OF_MD5,
    unique=True,
    sqlite_where=_UNKNOWN,
    postgresql_where=_UNKNOWN,
)

renders = table(
    "renders",
    own_id(),
    of_tenant(),
    md5(),  # the client's own mark, no digest of ours
    Column("metadata", JSON, nullable=False),
    Column("status", String(10), nullable=False),
    # what was requested, as `renders.model` reads it; null is the page's to say
    Column("wanted", JSON, nullable=False),
    # bytes of the page: the md5 of its html, or of its packed site
    Column("page_md5", LargeBinary(16)),
    Column("is_archive", Boolean, nullable=False, default=False),
    # what it came to: known when it is parted into slices
    Column("width", Integer),
    Column("height", Integer),
    Column("duration_ms", BigInteger),
    Column("frames", BigInteger),
    # of the result
    Column("media_type", String(40)),
    Column("byte_size", BigInteger),
    Column("result_md5", LargeBinary(16)),
    Column("index_key", Text),  # .fidx of an MP4
    Column("seconds", JSON),
    Column("notes", JSON),
    Column("problem", JSON),
    at("created_at", needed=True),
    at("queued_at"),
    at("started_at"),
    at("completed_at"),
    at("failed_at"),
    row_bytes(json=["metadata", "wanted", "seconds", "notes", "problem"]),
    indexes=["tenant_id row_bytes", "tenant_id id", "tenant_id md5"],
)

render_parts = table(
    "render_parts",
    of("renders", "render_id", primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("first", BigInteger, nullable=False),
    Column("stop", BigInteger, nullable=False),
    # frames of it that were finished by the run that came farthest
    Column("done", BigInteger, nullable=False, default=0),
    Column("attempts", Integer, nullable=False, default=0),
    # not a foreign key: a kept slice may go, and is made again
    Column("slice_id", String(36)),
    Column("reused", Boolean, nullable=False, default=False),
    Column("seconds", JSON),
    Column("notes", JSON),
)

render_slices = table(
    "render_slices",
    own_id(),
    of_tenant(),
    # the render it was made for, and goes with; null: that one is gone, others use it
    Column("render_id", String(36)),
    # digest of everything but the site that decides its pixels
    Column("recipe", LargeBinary(32), nullable=False),
    # paths of the site that were read, with their digests; null: looked for and not there
    Column("reads", JSON, nullable=False),
    # what has to be known of it to join it: as the maker told
    Column("made", JSON, nullable=False),
    at("created_at", needed=True),
    at("expires_at"),
    row_bytes(json=["reads", "made"]),
    indexes=["tenant_id row_bytes", "tenant_id recipe", "render_id", "expires_at"],
)
# those whose page is to come
_UNSENT = text("queued_at IS NULL AND failed_at IS NULL")
Index(None, renders.c.created_at, sqlite_where=_UNSENT, postgresql_where=_UNSENT)


transcriptions = table(
    "transcriptions",
    own_id(),
    of_tenant(),
    of("isobmff_files", "file_id"),
    Column("track_id", Integer, nullable=False),
    Column("status", String(12), nullable=False),
    Column("engine", String(40), nullable=False),
    # as it was requested, and as it turned out
    Column("wanted_language", String(35)),
    Column("language", String(35)),
    Column("work_slice_ms", Integer, nullable=False),
    # names and terms that are preferred, one a line; their bytes count in the plan
    Column("vocabulary", Text),
    # where the track ends on the presentation's time line
    Column("duration_ms", BigInteger, nullable=False),
    # known when the track is parted into slices, and kept so that all are heard alike
    Column("plan", JSON),
    Column("slices", Integer),
    Column("engine_version", String(40)),
    Column("model", Text),
    # of the result
    Column("words", Integer),
    Column("missing", JSON),
    Column("seconds", JSON),
    Column("problem", JSON),
    # a copy of the file with the captions in it, an ISOBMFF file of its own
    Column("copy_status", String(12)),
    Column("copy_orders", Integer, nullable=False, default=0),
    Column("copy_file_id", String(36)),
    Column("copy_problem", JSON),
    at("created_at", needed=True),
    at("started_at"),
    at("completed_at"),
    at("failed_at"),
    row_bytes(json=["plan", "missing", "seconds", "problem", "copy_problem"]),
    indexes=["tenant_id id", "tenant_id row_bytes", "file_id id"],
)

transcription_slices = table(
    "transcription_slices",
    of("transcriptions", "transcription_id", primary_key=True),
    # on the grid of work_slice_ms; those without sound are left out
    Column("number", Integer, primary_key=True),
    Column("attempts", Integer, nullable=False, default=0),
    # words and gaps, as `transcriptions.words` writes them; null until it was heard
    Column("heard", JSON(none_as_null=True)),
    Column("seconds", Float),
    at("completed_at"),
)

transcription_speakers = table(
    "transcription_speakers",
    of("transcriptions", "transcription_id", primary_key=True),
    # [start_ms, end_ms, voice] of all turns, by time; null until voices are told apart
    Column("turns", JSON(none_as_null=True)),
    # how many say words
    Column("speakers", Integer),
    # by S1, S2 …; those without a name are left out
    Column("names", JSON, nullable=False, default=dict),
)


jobs = table(
    "jobs",
    Column("id", String(120), primary_key=True),
    Column("name", String(40), nullable=False),
    # begun that often; also what tells a run that another one has taken its place
    Column("attempt", Integer, nullable=False, default=0),
    # why the last attempt failed; null while one runs
    Column("problem", JSON),
    # from when on it waits: of a delayed one, when it may begin
    at("created_at", needed=True),
    at("cancelled_at"),
    # whose work it is; null for slices, whose job says it
    Column("tenant_id", String(36)),
    # its number in its queue; null for one that was forgotten and found in the queue
    Column("turn", BigInteger),
    # null for slices, and as long as a job is not over
    at("ended_at"),
    indexes=["tenant_id ended_at"],
)
# What waits and what runs, of all tenants.
_GOING = text("tenant_id IS NOT NULL AND ended_at IS NULL AND cancelled_at IS NULL")
Index(
    None,
    jobs.c.name,
    jobs.c.attempt,
    jobs.c.created_at,
    sqlite_where=_GOING,
    postgresql_where=_GOING,
)

# Slices that wait; of those that were begun nobody asks.
_WAITING_SLICES = text("tenant_id IS NULL AND attempt = 0 AND cancelled_at IS NULL")
Index(
    "ix_fragdex_jobs_waiting_slices",
    jobs.c.name,
    sqlite_where=_WAITING_SLICES,
    postgresql_where=_WAITING_SLICES,
)

executors = table(
    "executors", Column("id", String(80), primary_key=True), at("seen_at", needed=True)
)

turns = table(
    "turns",
    Column("queue", String(40), primary_key=True),
    # empty: of nobody, the number that was begun last
    Column("tenant_id", String(36), primary_key=True),
    # the number of this tenant's next piece of work
    Column("next", BigInteger, nullable=False),
)


webhooks = table(
    "webhooks",
    own_id(),
    of_tenant(),
    Column("url", Text, nullable=False),
    Column("description", Text, nullable=False),
    # patterns of `outbox.EVENT_TYPES`
    Column("types", JSON, nullable=False),
    # counts rotations; the secret itself is derived from it and stands nowhere
    Column("secret_number", Integer, nullable=False),
    # until then deliveries are signed with the secret before, too
    at("previous_secret_until"),
    # when a delivery was last accepted
    at("accepted_at"),
    at("disabled_at"),
    Column("disabled_because", Text),
    at("created_at", needed=True),
    indexes=["tenant_id id"],
)

webhook_deliveries = table(
    "webhook_deliveries",
    # also the webhook-id header: a receiver knows by it what it has had already
    own_id(),
    of_tenant(),
    of("webhooks", "webhook_id"),
    Column("type", String(40), nullable=False),
    # as it is sent, byte for byte
    Column("body", Text, nullable=False),
    Column("status", String(10), nullable=False),
    # since it was ordered last
    Column("attempts", Integer, nullable=False),
    # attempts ordered in all: the number of the one that may run
    Column("orders", Integer, nullable=False),
    at("ordered_at", needed=True),
    at("next_attempt_at"),
    # of the last attempt
    Column("response_status", Integer),
    Column("response_body", Text),
    Column("problem", Text),
    at("created_at", needed=True),
    at("delivered_at"),
    at("failed_at"),
    row_bytes("body", "response_body", json=["problem"]),
    indexes=["webhook_id id", "tenant_id row_bytes", "created_at"],
)
