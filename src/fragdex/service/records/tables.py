"""All tables of the service. Migrations make them; a test holds the two equal.

| Table | A row is |
|---|---|
| tenants | an organisation; every record below belongs to one |
| keys | an API key; only a hash of its secret |
| secrets | what this installation signs and hashes with, made on first start |
| blobs | bytes in the store, once per tenant and md5 |
| blob_uses | a record that needs a blob; the last one gone, the bytes go |
| trash | an object of the store that no record names any more, until it is deleted |
| uploads | bytes on their way in, one per record that takes bytes |
| image_files, caption_files, unprocessed_files, isobmff_files, isobmff_tracks | the families |
| processes | the making of an ISOBMFF file from an unprocessed one |
| renders | a page that is, or was, rendered |
| render_parts | a slice of a render: how far it is, and which kept slice it became |
| render_slices | frames kept for any render that would make the same ones |
| transcriptions | what is, or was, heard in a track |
| transcription_slices | a slice of a transcription, and the words of it |
| replays | answers kept for requests that come again with their Idempotency-Key |
| jobs | work that was asked for: how often it was begun, and whether it is still wanted |
| executors | a worker process that is alive, by the database's clock |

Identifiers are UUIDv7 texts, they sort by time. md5 and sha256 are raw bytes. Instants are UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
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
    UniqueConstraint,
)

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


def _table(name: str, *parts: Any) -> Table:
    return Table(PREFIX + name, metadata, *parts)


def _id() -> Column[str]:
    return Column("id", String(36), primary_key=True)


def _tenant(**more: Any) -> Column[str]:
    key = ForeignKey(f"{PREFIX}tenants.id", ondelete="CASCADE")
    return Column("tenant_id", String(36), key, nullable=False, **more)


def _at(name: str, *, needed: bool = False) -> Column[datetime]:
    return Column(name, Instant, nullable=not needed)


def _md5(name: str = "md5", *, needed: bool = False) -> Column[bytes]:
    return Column(name, LargeBinary(16), nullable=not needed)


def _by_time_and_md5(table: Table) -> None:
    Index(None, table.c.tenant_id, table.c.id)
    Index(None, table.c.tenant_id, table.c.md5)


tenants = _table(
    "tenants",
    _id(),
    Column("name", Text, nullable=False, unique=True),
    _at("created_at", needed=True),
)

keys = _table(
    "keys",
    _id(),
    _tenant(),
    # HMAC-SHA-256 of the secret, keyed by secrets["api-keys"]
    Column("secret_hash", LargeBinary(32), nullable=False),
    Column("note", Text, nullable=False, default=""),
    _at("created_at", needed=True),
    _at("revoked_at"),
)

secrets = _table(
    "secrets",
    Column("name", String(40), primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

blobs = _table(
    "blobs",
    _tenant(primary_key=True),
    Column("md5", LargeBinary(16), primary_key=True),
    Column("sha256", LargeBinary(32), nullable=False),
    Column("byte_size", BigInteger, nullable=False),
    Column("store_key", Text, nullable=False),
    _at("created_at", needed=True),
)

blob_uses = _table(
    "blob_uses",
    _tenant(primary_key=True),
    Column("md5", LargeBinary(16), primary_key=True),
    # the family, and the record's id ("ID" or "ID/TRACK")
    Column("family", String(20), primary_key=True),
    Column("record_id", String(60), primary_key=True),
)

trash = _table(
    "trash",
    Column("store_key", Text, primary_key=True),
    _at("delete_after", needed=True),
)

uploads = _table(
    "uploads",
    Column("family", String(20), primary_key=True),
    Column("record_id", String(60), primary_key=True),
    _tenant(),
    Column("byte_size", BigInteger, nullable=False),
    _md5(),  # what the bytes must have; unknown for images sent without one
    # bytes 0..next_byte are durable in the store's draft
    Column("next_byte", BigInteger, nullable=False, default=0),
    Column("draft", Text, nullable=False),
    Column("lease_holder", String(36)),
    _at("lease_until"),
    _at("created_at", needed=True),
    _at("completed_at"),
)

image_files = _table(
    "image_files",
    _id(),
    _tenant(),
    Column("filename", Text, nullable=False),
    Column("mime_type", String(40), nullable=False),
    Column("byte_size", BigInteger, nullable=False),
    _md5(),
    Column("width", Integer),
    Column("height", Integer),
    Column("problem", JSON),
    _at("created_at", needed=True),
    _at("completed_at"),
    _at("failed_at"),
    _at("expires_at"),
)

caption_files = _table(
    "caption_files",
    _id(),
    _tenant(),
    Column("filename", Text, nullable=False),
    Column("mime_type", String(40), nullable=False),
    Column("byte_size", BigInteger, nullable=False),
    _md5(),
    Column("problem", JSON),
    _at("created_at", needed=True),
    _at("completed_at"),
    _at("failed_at"),
    _at("expires_at"),
)

unprocessed_files = _table(
    "unprocessed_files",
    _id(),
    _tenant(),
    Column("filename", Text, nullable=False),
    Column("mime_type", String(40)),
    Column("byte_size", BigInteger, nullable=False),
    _md5(),
    # a video of the one family is processed by itself once its last byte is in
    Column("process_when_complete", Boolean, nullable=False, default=False),
    # what the library's Indexer found while the bytes arrived: a stored .fidx, or nothing
    Column("index_key", Text),
    _at("created_at", needed=True),
    _at("completed_at"),
    _at("failed_at"),
    Column("problem", JSON),
    _at("expires_at"),
)

isobmff_files = _table(
    "isobmff_files",
    _id(),
    _tenant(),
    Column("filename", Text, nullable=False),
    _md5(needed=True),
    # of the bytes that this file is itself; null where only tracks or an index are known
    Column("byte_size", BigInteger),
    # the whole file's index: .fidx in the store, and the JSON it was sent as, unknown keys kept
    Column("index_key", Text),
    Column("index_json_key", Text),
    _at("index_completed_at"),
    _at("created_at", needed=True),
    _at("expires_at"),
)

isobmff_tracks = _table(
    "isobmff_tracks",
    Column(
        "file_id",
        String(36),
        ForeignKey(f"{PREFIX}isobmff_files.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("track_id", Integer, primary_key=True),  # -1: the scrub track
    _tenant(),
    Column("type", String(10), nullable=False),
    Column("probe_info", JSON),
    Column("duration_ms", BigInteger),
    Column("codec_name", String(40)),
    Column("byte_size", BigInteger),
    _md5(),
    Column("index_key", Text),  # .fidx of the track's own file
    _at("created_at", needed=True),
    _at("completed_at"),
)

processes = _table(
    "processes",
    _id(),
    _tenant(),
    Column(
        "unprocessed_file_id",
        String(36),
        ForeignKey(f"{PREFIX}unprocessed_files.id", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("isobmff_file_id", String(36)),
    Column("progress", Float, nullable=False, default=0.0),
    Column("problem", JSON),
    _at("created_at", needed=True),
    _at("started_at"),
    _at("completed_at"),
    _at("failed_at"),
)
Index(None, processes.c.unprocessed_file_id)

renders = _table(
    "renders",
    _id(),
    _tenant(),
    _md5(),  # the client's own mark, no digest of ours
    Column("metadata", JSON, nullable=False),
    Column("status", String(10), nullable=False),
    # what was asked for, as `renders.request` reads it; null is the page's to say
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
    _at("created_at", needed=True),
    _at("queued_at"),
    _at("started_at"),
    _at("completed_at"),
    _at("failed_at"),
)
_by_time_and_md5(renders)

render_parts = _table(
    "render_parts",
    Column(
        "render_id",
        String(36),
        ForeignKey(f"{PREFIX}renders.id", ondelete="CASCADE"),
        primary_key=True,
    ),
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

render_slices = _table(
    "render_slices",
    _id(),
    _tenant(),
    # the render it was made for, and goes with; null: that one is gone, others use it
    Column("render_id", String(36)),
    # digest of everything but the site that decides its pixels
    Column("recipe", LargeBinary(32), nullable=False),
    # paths of the site that were read, with their digests; null: looked for and not there
    Column("reads", JSON, nullable=False),
    # what has to be known of it to join it: as the maker told
    Column("made", JSON, nullable=False),
    _at("created_at", needed=True),
    _at("expires_at"),
)
Index(None, render_slices.c.tenant_id, render_slices.c.recipe)
Index(None, render_slices.c.render_id)

transcriptions = _table(
    "transcriptions",
    _id(),
    _tenant(),
    Column(
        "file_id",
        String(36),
        ForeignKey(f"{PREFIX}isobmff_files.id", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("track_id", Integer, nullable=False),
    Column("status", String(12), nullable=False),
    Column("engine", String(40), nullable=False),
    # as it was asked for, and as it turned out
    Column("wanted_language", String(35)),
    Column("language", String(35)),
    Column("work_slice_ms", Integer, nullable=False),
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
    _at("created_at", needed=True),
    _at("started_at"),
    _at("completed_at"),
    _at("failed_at"),
)
Index(None, transcriptions.c.tenant_id, transcriptions.c.id)
Index(None, transcriptions.c.file_id, transcriptions.c.id)

transcription_slices = _table(
    "transcription_slices",
    Column(
        "transcription_id",
        String(36),
        ForeignKey(f"{PREFIX}transcriptions.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    # on the grid of work_slice_ms; those without sound are left out
    Column("number", Integer, primary_key=True),
    Column("attempts", Integer, nullable=False, default=0),
    # words and gaps, as `transcriptions.words` writes them; null until it was heard
    Column("heard", JSON(none_as_null=True)),
    Column("seconds", Float),
    _at("completed_at"),
)

replays = _table(
    "replays",
    _tenant(primary_key=True),
    Column("key", String(255), primary_key=True),
    # sha256 of method, path and body
    Column("request_hash", LargeBinary(32), nullable=False),
    Column("status", Integer),  # null while the first request runs
    Column("headers", JSON),
    Column("body", LargeBinary),
    _at("created_at", needed=True),
)

jobs = _table(
    "jobs",
    Column("id", String(120), primary_key=True),
    Column("name", String(40), nullable=False),
    # begun that often; also what tells a run that another one has taken its place
    Column("attempt", Integer, nullable=False, default=0),
    # why the last attempt failed; null while one runs
    Column("problem", JSON),
    _at("created_at", needed=True),
    _at("cancelled_at"),
)

executors = _table(
    "executors",
    Column("id", String(80), primary_key=True),
    _at("seen_at", needed=True),
)

for _family in (image_files, caption_files, unprocessed_files, isobmff_files):
    _by_time_and_md5(_family)

# One record per tenant and md5: creating it again answers with the one that is there. (An
# unprocessed file may come without its md5, and turn out to be a second one of the same bytes.)
isobmff_files.append_constraint(UniqueConstraint(isobmff_files.c.tenant_id, isobmff_files.c.md5))
