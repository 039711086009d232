"""The tables of the first release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = None

_ID = sa.String(36)
_NAME = sa.String(40)
_MD5 = sa.LargeBinary(16)
_SHA256 = sa.LargeBinary(32)
_INSTANT = sa.DateTime(timezone=True)

# Copied from `tables`, which may change: this step may not.
_metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def upgrade() -> None:
    """Make them all."""
    _callers()
    _stored()
    _files()
    _renders()
    _transcriptions()
    _work()
    _webhooks()
    _metadata.create_all(op.get_bind(), checkfirst=False)
    if op.get_bind().dialect.name == "postgresql":
        # each request may write there, and a crash that empties it costs nothing
        op.execute("ALTER TABLE fragdex_rates SET UNLOGGED")


def _callers() -> None:
    _table(
        "tenants",
        _key(_ID, "id"),
        [sa.Column("name", sa.Text(), nullable=False, unique=True)],
        _optional(sa.BigInteger(), "max_stored_bytes"),
        _optional(sa.Float(), "max_render_seconds", "max_render_cost"),
        _optional(sa.Integer(), "max_jobs"),
        _optional(sa.Float(), "retention_days"),
        _created(),
    )
    _table(
        "keys",
        _key(_ID, "id"),
        _of("tenants", "tenant_id"),
        _needed(_SHA256, "secret_hash"),
        _needed(sa.Text(), "name"),
        _needed(sa.String(10), "scope"),
        _created(),
        _optional(_INSTANT, "expires_at", "revoked_at", "last_used_at"),
        _optional(_SHA256, "previous_hash"),
        _optional(_INSTANT, "previous_until"),
    )
    _table("rates", _key(_ID, "key_id"), _needed(sa.Float(), "full_at"))
    _table("secrets", _key(_NAME, "name"), _needed(sa.LargeBinary(), "value"))
    _table(
        "replays",
        _of("tenants", "tenant_id", primary_key=True),
        _key(sa.String(255), "key"),
        _needed(_SHA256, "request_hash"),
        _optional(sa.Integer(), "status"),
        _optional(sa.JSON(), "headers"),
        _optional(sa.LargeBinary(), "body"),
        _created(),
        _optional(_INSTANT, "alive_until"),
        indexes=["created_at"],
    )


def _stored() -> None:
    _table(
        "blobs",
        _of("tenants", "tenant_id", primary_key=True),
        _key(_SHA256, "sha256"),
        _needed(_MD5, "md5"),
        _needed(sa.BigInteger(), "byte_size"),
        _needed(sa.Text(), "store_key"),
        _needed(sa.BigInteger(), "stored_bytes"),
        _optional(_SHA256, "source_sha256"),
        _created(),
        indexes=["store_key", "tenant_id md5", "tenant_id stored_bytes", "tenant_id source_sha256"],
    )
    _table(
        "blob_uses",
        _of("tenants", "tenant_id", primary_key=True),
        _key(_SHA256, "sha256"),
        _key(sa.String(20), "family"),
        _key(sa.String(60), "record_id"),
        indexes=["family record_id"],
    )
    derived_files = _table(
        "derived_files",
        _key(_ID, "id"),
        _of("tenants", "tenant_id"),
        _needed(_SHA256, "source_sha256"),
        _needed(sa.String(200), "recipe"),
        _needed(_NAME, "part", "media_type"),
        _created(),
        _needed(_INSTANT, "expires_at"),
        indexes=["expires_at"],
    )
    derived = derived_files.c
    sa.Index(
        None, derived.tenant_id, derived.source_sha256, derived.recipe, derived.part, unique=True
    )
    _table(
        "trash",
        _key(sa.Text(), "store_key"),
        _needed(_INSTANT, "delete_after"),
        _optional(_INSTANT, "let_go_at", "deleting_at"),
        indexes=["delete_after"],
    )
    _table(
        "uploads",
        _key(sa.String(20), "family"),
        _key(sa.String(60), "record_id"),
        _of("tenants", "tenant_id"),
        _needed(sa.BigInteger(), "byte_size", "next_byte"),
        _optional(_MD5, "md5"),
        _optional(_SHA256, "sha256"),
        _needed(sa.Text(), "draft"),
        _optional(sa.Text(), "object_key"),
        _optional(_ID, "lease_holder"),
        _created(),
        _optional(_INSTANT, "lease_until", "written_at", "completed_at"),
        indexes=["draft", "tenant_id completed_at"],
    )


def _files() -> None:
    common_indexes = ["tenant_id id", "tenant_id md5", "expires_at"]
    _table(
        "files",
        _key(_ID, "id"),
        _of("tenants", "tenant_id"),
        _needed(sa.String(10), "type"),
        _needed(sa.Text(), "filename"),
        _optional(_NAME, "mime_type"),
        _needed(sa.BigInteger(), "byte_size"),
        _optional(_MD5, "md5"),
        _optional(_SHA256, "sha256"),
        _optional(sa.Integer(), "width", "height"),
        _needed(sa.Boolean(), "process_when_complete"),
        _optional(sa.Text(), "index_key"),
        _optional(sa.JSON(), "problem"),
        _created(),
        _ends(),
        indexes=["tenant_id type id", *common_indexes],
    )
    _table(
        "tus_uploads",
        _key(_ID, "id"),
        _of("tenants", "tenant_id"),
        _needed(sa.Text(), "filename"),
        _needed(_NAME, "mime_type"),
        _needed(sa.BigInteger(), "byte_size"),
        _optional(_MD5, "md5"),
        _optional(sa.Text(), "metadata", "concat"),
        _needed(sa.Boolean(), "made_file"),
        _created(),
        _optional(_INSTANT, "completed_at"),
        _needed(_INSTANT, "expires_at"),
        indexes=common_indexes,
    )
    isobmff_files = _table(
        "isobmff_files",
        _key(_ID, "id"),
        _of("tenants", "tenant_id"),
        _needed(sa.Text(), "filename"),
        _needed(_MD5, "md5"),
        _optional(_SHA256, "sha256"),
        _optional(sa.BigInteger(), "byte_size"),
        _optional(sa.Text(), "index_key", "index_json_key"),
        _created(),
        _optional(_INSTANT, "index_completed_at", "expires_at"),
        indexes=common_indexes,
    )
    column = isobmff_files.c
    unknown = column.sha256.is_(None)
    sa.Index(None, column.tenant_id, column.md5, column.sha256, unique=True)
    sa.Index(
        "ix_fragdex_isobmff_files_unknown",
        column.tenant_id,
        column.md5,
        unique=True,
        sqlite_where=unknown,
        postgresql_where=unknown,
    )
    _table(
        "isobmff_tracks",
        _of("isobmff_files", "file_id", primary_key=True),
        _key(sa.Integer(), "track_id"),
        _of("tenants", "tenant_id"),
        _needed(sa.String(10), "type"),
        _optional(sa.JSON(), "probe_info"),
        _optional(sa.BigInteger(), "duration_ms", "byte_size"),
        _optional(_NAME, "codec_name"),
        _optional(_MD5, "md5"),
        _optional(sa.Text(), "index_key"),
        _created(),
        _optional(_INSTANT, "completed_at"),
    )
    _table(
        "processes",
        _key(_ID, "id"),
        _of("tenants", "tenant_id"),
        _of("files", "unprocessed_file_id"),
        _optional(_ID, "isobmff_file_id"),
        _needed(sa.Float(), "progress"),
        _optional(sa.JSON(), "problem"),
        _created(),
        _optional(_INSTANT, "started_at", "completed_at", "failed_at"),
        indexes=["unprocessed_file_id"],
    )

    _table(
        "timelines",
        _key(_ID, "id"),
        _of("tenants", "tenant_id"),
        _needed(sa.Text(), "name"),
        _needed(sa.JSON(), "files"),
        _needed(sa.String(10), "gaps"),
        _created(),
        _optional(_INSTANT, "expires_at"),
        indexes=["tenant_id id", "expires_at"],
    )


def _renders() -> None:
    renders = _table(
        "renders",
        _key(_ID, "id"),
        _of("tenants", "tenant_id"),
        _needed(sa.JSON(), "metadata", "wanted"),
        _needed(sa.String(10), "status"),
        _needed(sa.Boolean(), "is_archive"),
        _optional(_MD5, "md5", "page_md5", "result_md5"),
        _optional(sa.Integer(), "width", "height"),
        _optional(sa.BigInteger(), "duration_ms", "frames", "byte_size"),
        _optional(_NAME, "media_type"),
        _optional(sa.Text(), "index_key"),
        _optional(sa.JSON(), "seconds", "notes", "problem"),
        _created(),
        _optional(_INSTANT, "queued_at", "started_at", "completed_at", "failed_at"),
        indexes=["tenant_id id", "tenant_id md5"],
    )
    unsent = sa.text("queued_at IS NULL AND failed_at IS NULL")
    sa.Index(None, renders.c.created_at, sqlite_where=unsent, postgresql_where=unsent)
    _table(
        "render_parts",
        _of("renders", "render_id", primary_key=True),
        _key(sa.Integer(), "number"),
        _needed(sa.BigInteger(), "first", "stop", "done"),
        _needed(sa.Integer(), "attempts"),
        _optional(_ID, "slice_id"),
        _needed(sa.Boolean(), "reused"),
        _optional(sa.JSON(), "seconds", "notes"),
    )
    _table(
        "render_slices",
        _key(_ID, "id"),
        _of("tenants", "tenant_id"),
        _optional(_ID, "render_id"),
        _needed(_SHA256, "recipe"),
        _needed(sa.JSON(), "reads", "made"),
        _created(),
        _optional(_INSTANT, "expires_at"),
        indexes=["tenant_id recipe", "render_id", "expires_at"],
    )


def _transcriptions() -> None:
    _table(
        "transcriptions",
        _key(_ID, "id"),
        _of("tenants", "tenant_id"),
        _of("isobmff_files", "file_id"),
        _needed(sa.Integer(), "track_id", "work_slice_ms", "copy_orders"),
        _needed(sa.String(12), "status"),
        _needed(_NAME, "engine"),
        _needed(sa.BigInteger(), "duration_ms"),
        _optional(sa.String(35), "wanted_language", "language"),
        _optional(sa.Integer(), "slices", "words"),
        _optional(_NAME, "engine_version"),
        _optional(sa.Text(), "model"),
        _optional(sa.JSON(), "plan", "missing", "seconds", "problem", "copy_problem"),
        _optional(sa.String(12), "copy_status"),
        _optional(_ID, "copy_file_id"),
        _created(),
        _optional(_INSTANT, "started_at", "completed_at", "failed_at"),
        indexes=["tenant_id id", "file_id id"],
    )
    _table(
        "transcription_slices",
        _of("transcriptions", "transcription_id", primary_key=True),
        _key(sa.Integer(), "number"),
        _needed(sa.Integer(), "attempts"),
        _optional(sa.JSON(), "heard"),
        _optional(sa.Float(), "seconds"),
        _optional(_INSTANT, "completed_at"),
    )


def _work() -> None:
    jobs = _table(
        "jobs",
        _key(sa.String(120), "id"),
        _needed(_NAME, "name"),
        _needed(sa.Integer(), "attempt"),
        _optional(sa.JSON(), "problem"),
        _created(),
        _optional(_INSTANT, "cancelled_at", "ended_at"),
        _optional(_ID, "tenant_id"),
        _optional(sa.BigInteger(), "turn"),
        indexes=["tenant_id ended_at"],
    )
    going = sa.text("tenant_id IS NOT NULL AND ended_at IS NULL AND cancelled_at IS NULL")
    sa.Index(
        None,
        jobs.c.name,
        jobs.c.attempt,
        jobs.c.created_at,
        sqlite_where=going,
        postgresql_where=going,
    )
    slices = sa.text("tenant_id IS NULL AND attempt = 0 AND cancelled_at IS NULL")
    sa.Index(
        "ix_fragdex_jobs_waiting_slices",
        jobs.c.name,
        sqlite_where=slices,
        postgresql_where=slices,
    )
    _table("executors", _key(sa.String(80), "id"), _needed(_INSTANT, "seen_at"))
    _table(
        "turns",
        _key(_NAME, "queue"),
        _key(_ID, "tenant_id"),
        _needed(sa.BigInteger(), "next"),
    )


def _webhooks() -> None:
    _table(
        "webhooks",
        _key(_ID, "id"),
        _of("tenants", "tenant_id"),
        _needed(sa.Text(), "url", "description"),
        _needed(sa.JSON(), "types"),
        _needed(sa.Integer(), "secret_number"),
        _optional(_INSTANT, "previous_secret_until", "accepted_at", "disabled_at"),
        _optional(sa.Text(), "disabled_because"),
        _created(),
        indexes=["tenant_id id"],
    )
    _table(
        "webhook_deliveries",
        _key(_ID, "id"),
        _of("tenants", "tenant_id"),
        _of("webhooks", "webhook_id"),
        _needed(_NAME, "type"),
        _needed(sa.Text(), "body"),
        _needed(sa.String(10), "status"),
        _needed(sa.Integer(), "attempts", "orders"),
        _needed(_INSTANT, "ordered_at"),
        _optional(_INSTANT, "next_attempt_at"),
        _optional(sa.Integer(), "response_status"),
        _optional(sa.Text(), "response_body", "problem"),
        _created(),
        _optional(_INSTANT, "delivered_at", "failed_at"),
        indexes=["webhook_id id", "created_at"],
    )


def _table(name: str, *parts: list[sa.Column[Any]], indexes: Sequence[str] = ()) -> sa.Table:
    """A table of these columns; an index is named by its columns."""
    columns = [column for part in parts for column in part]
    table = sa.Table(f"fragdex_{name}", _metadata, *columns)
    for index in indexes:
        sa.Index(None, *(table.c[column] for column in index.split()))
    return table


def _key(kind: Any, name: str) -> list[sa.Column[Any]]:
    """A column of the primary key."""
    return [sa.Column(name, kind, primary_key=True)]


def _of(table: str, name: str, *, primary_key: bool = False) -> list[sa.Column[Any]]:
    """The id of a row that this one goes with."""
    owner = sa.ForeignKey(f"fragdex_{table}.id", ondelete="CASCADE")
    return [sa.Column(name, _ID, owner, nullable=False, primary_key=primary_key)]


def _needed(kind: Any, *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, nullable=False) for name in names]


def _optional(kind: Any, *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind) for name in names]


def _created() -> list[sa.Column[Any]]:
    return _needed(_INSTANT, "created_at")


def _ends() -> list[sa.Column[Any]]:
    return _optional(_INSTANT, "completed_at", "failed_at", "expires_at")
