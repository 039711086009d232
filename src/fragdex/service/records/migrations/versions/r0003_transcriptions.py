"""The tables of transcriptions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make them."""
    op.create_table(
        "fragdex_transcriptions",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("tenant_id", sa.String(length=36), nullable=False),
        sa.Column("file_id", sa.String(length=36), nullable=False),
        sa.Column("track_id", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=12), nullable=False),
        sa.Column("engine", sa.String(length=40), nullable=False),
        sa.Column("wanted_language", sa.String(length=35), nullable=True),
        sa.Column("language", sa.String(length=35), nullable=True),
        sa.Column("work_slice_ms", sa.Integer(), nullable=False),
        sa.Column("duration_ms", sa.BigInteger(), nullable=False),
        sa.Column("plan", sa.JSON(), nullable=True),
        sa.Column("slices", sa.Integer(), nullable=True),
        sa.Column("engine_version", sa.String(length=40), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("words", sa.Integer(), nullable=True),
        sa.Column("missing", sa.JSON(), nullable=True),
        sa.Column("seconds", sa.JSON(), nullable=True),
        sa.Column("problem", sa.JSON(), nullable=True),
        sa.Column("copy_status", sa.String(length=12), nullable=True),
        sa.Column("copy_orders", sa.Integer(), nullable=False),
        sa.Column("copy_file_id", sa.String(length=36), nullable=True),
        sa.Column("copy_problem", sa.JSON(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failed_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["fragdex_tenants.id"],
            name=op.f("fk_fragdex_transcriptions_tenant_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["file_id"],
            ["fragdex_isobmff_files.id"],
            name=op.f("fk_fragdex_transcriptions_file_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fragdex_transcriptions")),
    )
    op.create_index(
        op.f("ix_fragdex_transcriptions_file_id_id"),
        "fragdex_transcriptions",
        ["file_id", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_fragdex_transcriptions_tenant_id_id"),
        "fragdex_transcriptions",
        ["tenant_id", "id"],
        unique=False,
    )
    op.create_table(
        "fragdex_transcription_slices",
        sa.Column("transcription_id", sa.String(length=36), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("heard", sa.JSON(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["transcription_id"],
            ["fragdex_transcriptions.id"],
            name=op.f("fk_fragdex_transcription_slices_transcription_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "transcription_id", "number", name=op.f("pk_fragdex_transcription_slices")
        ),
    )
