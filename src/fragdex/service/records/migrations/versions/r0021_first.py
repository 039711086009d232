"""The tables of the first release."""

from __future__ import annotations

import re
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = None

# Copied from `tables`, which may change: this step may not.
_TABLES = """
tenants: *id id, name text unique, max_stored_bytes bigint?, max_render_seconds float?,
    max_render_cost float?, max_jobs int?, retention_days float?, created_at instant
keys: *id id, tenant_id of tenants, secret_hash sha256, name text, scope string(10),
    created_at instant, expires_at instant?, revoked_at instant?, last_used_at instant?,
    previous_hash sha256?, previous_until instant?
rates: *key_id id, full_at float
secrets: *name name, value bytes
replays: *tenant_id of tenants, *key string(255), request_hash sha256, status int?, headers json?,
    body bytes?, created_at instant, alive_until instant?
    index created_at
blobs: *tenant_id of tenants, *sha256 sha256, md5 md5, byte_size bigint, store_key text,
    stored_bytes bigint, source_sha256 sha256?, created_at instant
    index store_key, tenant_id md5, tenant_id source_sha256, tenant_id stored_bytes
blob_uses: *tenant_id of tenants, *sha256 sha256, *family string(20), *record_id string(60)
    index family record_id
derived_files: *id id, tenant_id of tenants, source_sha256 sha256, recipe string(200), part name,
    media_type name, created_at instant, expires_at instant
    index expires_at
trash: *store_key text, delete_after instant, let_go_at instant?, deleting_at instant?
    index delete_after
uploads: *family string(20), *record_id string(60), tenant_id of tenants, byte_size bigint,
    next_byte bigint, md5 md5?, sha256 sha256?, draft text, object_key text?, lease_holder id?,
    created_at instant, lease_until instant?, written_at instant?, completed_at instant?
    index draft, tenant_id completed_at
files: *id id, tenant_id of tenants, type string(10), filename text, mime_type name?,
    byte_size bigint, md5 md5?, sha256 sha256?, width int?, height int?,
    process_when_complete bool, index_key text?, problem json?, created_at instant,
    completed_at instant?, failed_at instant?, expires_at instant?
    index expires_at, tenant_id id, tenant_id md5, tenant_id type id
tus_uploads: *id id, tenant_id of tenants, filename text, mime_type name, byte_size bigint,
    md5 md5?, metadata text?, concat text?, made_file bool, created_at instant,
    completed_at instant?, expires_at instant
    index expires_at, tenant_id id, tenant_id md5
isobmff_files: *id id, tenant_id of tenants, filename text, md5 md5, sha256 sha256?,
    byte_size bigint?, index_key text?, index_json_key text?, created_at instant,
    index_completed_at instant?, expires_at instant?
    index expires_at, tenant_id id, tenant_id md5
isobmff_tracks: *file_id of isobmff_files, *track_id int, tenant_id of tenants, type string(10),
    probe_info json?, duration_ms bigint?, byte_size bigint?, codec_name name?, md5 md5?,
    index_key text?, created_at instant, completed_at instant?
processes: *id id, tenant_id of tenants, unprocessed_file_id of files, isobmff_file_id id?,
    progress float, problem json?, created_at instant, started_at instant?, completed_at instant?,
    failed_at instant?
    index unprocessed_file_id
timelines: *id id, tenant_id of tenants, name text, files json, gaps string(10),
    created_at instant, expires_at instant?
    index expires_at, tenant_id id
renders: *id id, tenant_id of tenants, metadata json, wanted json, status string(10),
    is_archive bool, md5 md5?, page_md5 md5?, result_md5 md5?, width int?, height int?,
    duration_ms bigint?, frames bigint?, byte_size bigint?, media_type name?, index_key text?,
    seconds json?, notes json?, problem json?, created_at instant, queued_at instant?,
    started_at instant?, completed_at instant?, failed_at instant?
    index tenant_id id, tenant_id md5
render_parts: *render_id of renders, *number int, first bigint, stop bigint, done bigint,
    attempts int, slice_id id?, reused bool, seconds json?, notes json?
render_slices: *id id, tenant_id of tenants, render_id id?, recipe sha256, reads json, made json,
    created_at instant, expires_at instant?
    index expires_at, render_id, tenant_id recipe
transcriptions: *id id, tenant_id of tenants, file_id of isobmff_files, track_id int,
    work_slice_ms int, copy_orders int, status string(12), engine name, duration_ms bigint,
    wanted_language string(35)?, language string(35)?, slices int?, words int?,
    engine_version name?, model text?, plan json?, missing json?, seconds json?, problem json?,
    copy_problem json?, copy_status string(12)?, copy_file_id id?, created_at instant,
    started_at instant?, completed_at instant?, failed_at instant?
    index file_id id, tenant_id id
transcription_slices: *transcription_id of transcriptions, *number int, attempts int, heard json?,
    seconds float?, completed_at instant?
jobs: *id string(120), name name, attempt int, problem json?, created_at instant,
    cancelled_at instant?, ended_at instant?, tenant_id id?, turn bigint?
    index tenant_id ended_at
executors: *id string(80), seen_at instant
turns: *queue name, *tenant_id id, next bigint
webhooks: *id id, tenant_id of tenants, url text, description text, types json, secret_number int,
    previous_secret_until instant?, accepted_at instant?, disabled_at instant?,
    disabled_because text?, created_at instant
    index tenant_id id
webhook_deliveries: *id id, tenant_id of tenants, webhook_id of webhooks, type name, body text,
    status string(10), attempts int, orders int, ordered_at instant, next_attempt_at instant?,
    response_status int?, response_body text?, problem text?, created_at instant,
    delivered_at instant?, failed_at instant?
    index created_at, webhook_id id
"""
"""Tables by name: columns, then indexes by theirs.

`*`: of the primary key; `?`: may be null; `of`: the id of a row that this one goes with.
"""

_KINDS: dict[str, Any] = {
    "id": sa.String(36),
    "name": sa.String(40),
    "text": sa.Text(),
    "md5": sa.LargeBinary(16),
    "sha256": sa.LargeBinary(32),
    "bytes": sa.LargeBinary(),
    "int": sa.Integer(),
    "bigint": sa.BigInteger(),
    "float": sa.Float(),
    "bool": sa.Boolean(),
    "json": sa.JSON(),
    "instant": sa.DateTime(timezone=True),
}


def upgrade() -> None:
    """Make them all."""
    declared().create_all(op.get_bind(), checkfirst=False)
    if op.get_bind().dialect.name == "postgresql":
        # each request may write there, and a crash that empties it costs nothing
        op.execute("ALTER TABLE fragdex_rates SET UNLOGGED")


def declared() -> sa.MetaData:
    """The tables and their indexes."""
    metadata = sa.MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    for told in re.split(r"\n(?=\w)", _TABLES.strip()):
        name, _, parts = told.partition(": ")
        columns, _, indexes = parts.partition(" index ")
        table = sa.Table(f"fragdex_{name}", metadata, *map(_column, columns.split(",")))
        for index in filter(None, indexes.split(",")):
            _index(table, index)
    tables = metadata.tables
    _index(tables["fragdex_derived_files"], "tenant_id source_sha256 recipe part", unique=True)
    files, renders = tables["fragdex_isobmff_files"], tables["fragdex_renders"]
    _index(files, "tenant_id md5 sha256", unique=True)
    name = "ix_fragdex_isobmff_files_unknown"
    _index(files, "tenant_id md5", files.c.sha256.is_(None), name=name, unique=True)
    _index(renders, "created_at", sa.text("queued_at IS NULL AND failed_at IS NULL"))
    jobs = tables["fragdex_jobs"]
    going = "tenant_id IS NOT NULL AND ended_at IS NULL AND cancelled_at IS NULL"
    _index(jobs, "name attempt created_at", sa.text(going))
    slices = "tenant_id IS NULL AND attempt = 0 AND cancelled_at IS NULL"
    _index(jobs, "name", sa.text(slices), name="ix_fragdex_jobs_waiting_slices")
    return metadata


def _column(told: str) -> sa.Column[Any]:
    name, kind, *more = told.split()
    key, optional = name.startswith("*"), kind.endswith("?")
    name, kind = name.removeprefix("*"), kind.removesuffix("?")
    if kind == "of":
        owner = sa.ForeignKey(f"fragdex_{more[0]}.id", ondelete="CASCADE")
        return sa.Column(name, _KINDS["id"], owner, nullable=False, primary_key=key)
    length = re.fullmatch(r"string\((\d+)\)", kind)
    of_kind: Any = sa.String(int(length[1])) if length else _KINDS[kind]
    unique = "unique" in more or None
    return sa.Column(name, of_kind, nullable=optional, primary_key=key, unique=unique)


def _index(
    table: sa.Table, columns: str, where: Any = None, *, name: str | None = None, **more: Any
) -> None:
    """An index, named by its columns; `where`: of those rows alone."""
    some = {} if where is None else {"sqlite_where": where, "postgresql_where": where}
    sa.Index(name, *(table.c[column] for column in columns.split()), **some, **more)
