"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make them all."""
    op.create_table(
        "fragdex_executors",
        sa.Column("id", sa.String(length=80), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fragdex_executors")),
    )
    op.create_table(
        "fragdex_jobs",
        sa.Column("id", sa.String(length=120), nullable=False),
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("problem", sa.JSON(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("cancelled_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fragdex_jobs")),
    )
    op.create_table(
        "fragdex_secrets",
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_fragdex_secrets")),
    )
    op.create_table(
        "fragdex_tenants",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fragdex_tenants")),
        sa.UniqueConstraint("name", name=op.f("uq_fragdex_tenants_name")),
    )
    op.create_table(
        "fragdex_trash",
        sa.Column("store_key", sa.Text(), nullable=False),
        sa.Column("delete_after", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("store_key", name=op.f("pk_fragdex_trash")),
    )
    op.create_table(
        "fragdex_blob_uses",
        sa.Column("tenant_id", sa.String(length=36), nullable=False),
        sa.Column("md5", sa.LargeBinary(length=16), nullable=False),
        sa.Column("family", sa.String(length=20), nullable=False),
        sa.Column("record_id", sa.String(length=60), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["fragdex_tenants.id"],
            name=op.f("fk_fragdex_blob_uses_tenant_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "md5", "family", "record_id", name=op.f("pk_fragdex_blob_uses")
        ),
    )
    op.create_table(
        "fragdex_blobs",
        sa.Column("tenant_id", sa.String(length=36), nullable=False),
        sa.Column("md5", sa.LargeBinary(length=16), nullable=False),
        sa.Column("sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("byte_size", sa.BigInteger(), nullable=False),
        sa.Column("store_key", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["fragdex_tenants.id"],
            name=op.f("fk_fragdex_blobs_tenant_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "md5", name=op.f("pk_fragdex_blobs")),
    )
    op.create_table(
        "fragdex_caption_files",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("tenant_id", sa.String(length=36), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("mime_type", sa.String(length=40), nullable=False),
        sa.Column("byte_size", sa.BigInteger(), nullable=False),
        sa.Column("md5", sa.LargeBinary(length=16), nullable=True),
        sa.Column("problem", sa.JSON(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["fragdex_tenants.id"],
            name=op.f("fk_fragdex_caption_files_tenant_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fragdex_caption_files")),
    )
    op.create_index(
        op.f("ix_fragdex_caption_files_tenant_id_id"),
        "fragdex_caption_files",
        ["tenant_id", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_fragdex_caption_files_tenant_id_md5"),
        "fragdex_caption_files",
        ["tenant_id", "md5"],
        unique=False,
    )
    op.create_table(
        "fragdex_image_files",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("tenant_id", sa.String(length=36), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("mime_type", sa.String(length=40), nullable=False),
        sa.Column("byte_size", sa.BigInteger(), nullable=False),
        sa.Column("md5", sa.LargeBinary(length=16), nullable=True),
        sa.Column("width", sa.Integer(), nullable=True),
        sa.Column("height", sa.Integer(), nullable=True),
        sa.Column("problem", sa.JSON(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["fragdex_tenants.id"],
            name=op.f("fk_fragdex_image_files_tenant_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fragdex_image_files")),
    )
    op.create_index(
        op.f("ix_fragdex_image_files_tenant_id_id"),
        "fragdex_image_files",
        ["tenant_id", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_fragdex_image_files_tenant_id_md5"),
        "fragdex_image_files",
        ["tenant_id", "md5"],
        unique=False,
    )
    op.create_table(
        "fragdex_isobmff_files",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("tenant_id", sa.String(length=36), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("md5", sa.LargeBinary(length=16), nullable=False),
        sa.Column("byte_size", sa.BigInteger(), nullable=True),
        sa.Column("index_key", sa.Text(), nullable=True),
        sa.Column("index_json_key", sa.Text(), nullable=True),
        sa.Column("index_completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["fragdex_tenants.id"],
            name=op.f("fk_fragdex_isobmff_files_tenant_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fragdex_isobmff_files")),
        sa.UniqueConstraint(
            "tenant_id", "md5", name=op.f("uq_fragdex_isobmff_files_tenant_id_md5")
        ),
    )
    op.create_index(
        op.f("ix_fragdex_isobmff_files_tenant_id_id"),
        "fragdex_isobmff_files",
        ["tenant_id", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_fragdex_isobmff_files_tenant_id_md5"),
        "fragdex_isobmff_files",
        ["tenant_id", "md5"],
        unique=False,
    )
    op.create_table(
        "fragdex_keys",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("tenant_id", sa.String(length=36), nullable=False),
        sa.Column("secret_hash", sa.LargeBinary(length=32), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["fragdex_tenants.id"],
            name=op.f("fk_fragdex_keys_tenant_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fragdex_keys")),
    )
    op.create_table(
        "fragdex_replays",
        sa.Column("tenant_id", sa.String(length=36), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("request_hash", sa.LargeBinary(length=32), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("headers", sa.JSON(), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["fragdex_tenants.id"],
            name=op.f("fk_fragdex_replays_tenant_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "key", name=op.f("pk_fragdex_replays")),
    )
    op.create_table(
        "fragdex_unprocessed_files",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("tenant_id", sa.String(length=36), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("mime_type", sa.String(length=40), nullable=True),
        sa.Column("byte_size", sa.BigInteger(), nullable=False),
        sa.Column("md5", sa.LargeBinary(length=16), nullable=True),
        sa.Column("process_when_complete", sa.Boolean(), nullable=False),
        sa.Column("index_key", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("problem", sa.JSON(), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["fragdex_tenants.id"],
            name=op.f("fk_fragdex_unprocessed_files_tenant_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fragdex_unprocessed_files")),
    )
    op.create_index(
        op.f("ix_fragdex_unprocessed_files_tenant_id_id"),
        "fragdex_unprocessed_files",
        ["tenant_id", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_fragdex_unprocessed_files_tenant_id_md5"),
        "fragdex_unprocessed_files",
        ["tenant_id", "md5"],
        unique=False,
    )
    op.create_table(
        "fragdex_uploads",
        sa.Column("family", sa.String(length=20), nullable=False),
        sa.Column("record_id", sa.String(length=60), nullable=False),
        sa.Column("tenant_id", sa.String(length=36), nullable=False),
        sa.Column("byte_size", sa.BigInteger(), nullable=False),
        sa.Column("md5", sa.LargeBinary(length=16), nullable=True),
        sa.Column("next_byte", sa.BigInteger(), nullable=False),
        sa.Column("draft", sa.Text(), nullable=False),
        sa.Column("lease_holder", sa.String(length=36), nullable=True),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["fragdex_tenants.id"],
            name=op.f("fk_fragdex_uploads_tenant_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("family", "record_id", name=op.f("pk_fragdex_uploads")),
    )
    op.create_table(
        "fragdex_isobmff_tracks",
        sa.Column("file_id", sa.String(length=36), nullable=False),
        sa.Column("track_id", sa.Integer(), nullable=False),
        sa.Column("tenant_id", sa.String(length=36), nullable=False),
        sa.Column("type", sa.String(length=10), nullable=False),
        sa.Column("probe_info", sa.JSON(), nullable=True),
        sa.Column("duration_ms", sa.BigInteger(), nullable=True),
        sa.Column("codec_name", sa.String(length=40), nullable=True),
        sa.Column("byte_size", sa.BigInteger(), nullable=True),
        sa.Column("md5", sa.LargeBinary(length=16), nullable=True),
        sa.Column("index_key", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["file_id"],
            ["fragdex_isobmff_files.id"],
            name=op.f("fk_fragdex_isobmff_tracks_file_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["fragdex_tenants.id"],
            name=op.f("fk_fragdex_isobmff_tracks_tenant_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("file_id", "track_id", name=op.f("pk_fragdex_isobmff_tracks")),
    )
    op.create_table(
        "fragdex_processes",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("tenant_id", sa.String(length=36), nullable=False),
        sa.Column("unprocessed_file_id", sa.String(length=36), nullable=False),
        sa.Column("isobmff_file_id", sa.String(length=36), nullable=True),
        sa.Column("progress", sa.Float(), nullable=False),
        sa.Column("problem", sa.JSON(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failed_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["fragdex_tenants.id"],
            name=op.f("fk_fragdex_processes_tenant_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["unprocessed_file_id"],
            ["fragdex_unprocessed_files.id"],
            name=op.f("fk_fragdex_processes_unprocessed_file_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fragdex_processes")),
    )
    op.create_index(
        op.f("ix_fragdex_processes_unprocessed_file_id"),
        "fragdex_processes",
        ["unprocessed_file_id"],
        unique=False,
    )
