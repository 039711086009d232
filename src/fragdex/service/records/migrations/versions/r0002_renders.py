"""The tables of renders."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make them."""
    op.create_table(
        "fragdex_render_slices",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("tenant_id", sa.String(length=36), nullable=False),
        sa.Column("render_id", sa.String(length=36), nullable=True),
        sa.Column("recipe", sa.LargeBinary(length=32), nullable=False),
        sa.Column("reads", sa.JSON(), nullable=False),
        sa.Column("made", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["fragdex_tenants.id"],
            name=op.f("fk_fragdex_render_slices_tenant_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fragdex_render_slices")),
    )
    op.create_index(
        op.f("ix_fragdex_render_slices_render_id"),
        "fragdex_render_slices",
        ["render_id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_fragdex_render_slices_tenant_id_recipe"),
        "fragdex_render_slices",
        ["tenant_id", "recipe"],
        unique=False,
    )
    op.create_table(
        "fragdex_renders",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("tenant_id", sa.String(length=36), nullable=False),
        sa.Column("md5", sa.LargeBinary(length=16), nullable=True),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.Column("status", sa.String(length=10), nullable=False),
        sa.Column("wanted", sa.JSON(), nullable=False),
        sa.Column("page_md5", sa.LargeBinary(length=16), nullable=True),
        sa.Column("is_archive", sa.Boolean(), nullable=False),
        sa.Column("width", sa.Integer(), nullable=True),
        sa.Column("height", sa.Integer(), nullable=True),
        sa.Column("duration_ms", sa.BigInteger(), nullable=True),
        sa.Column("frames", sa.BigInteger(), nullable=True),
        sa.Column("media_type", sa.String(length=40), nullable=True),
        sa.Column("byte_size", sa.BigInteger(), nullable=True),
        sa.Column("result_md5", sa.LargeBinary(length=16), nullable=True),
        sa.Column("index_key", sa.Text(), nullable=True),
        sa.Column("seconds", sa.JSON(), nullable=True),
        sa.Column("notes", sa.JSON(), nullable=True),
        sa.Column("problem", sa.JSON(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("queued_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failed_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["fragdex_tenants.id"],
            name=op.f("fk_fragdex_renders_tenant_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fragdex_renders")),
    )
    op.create_index(
        op.f("ix_fragdex_renders_tenant_id_id"),
        "fragdex_renders",
        ["tenant_id", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_fragdex_renders_tenant_id_md5"),
        "fragdex_renders",
        ["tenant_id", "md5"],
        unique=False,
    )
    op.create_table(
        "fragdex_render_parts",
        sa.Column("render_id", sa.String(length=36), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("stop", sa.BigInteger(), nullable=False),
        sa.Column("done", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("slice_id", sa.String(length=36), nullable=True),
        sa.Column("reused", sa.Boolean(), nullable=False),
        sa.Column("seconds", sa.JSON(), nullable=True),
        sa.Column("notes", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(
            ["render_id"],
            ["fragdex_renders.id"],
            name=op.f("fk_fragdex_render_parts_render_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("render_id", "number", name=op.f("pk_fragdex_render_parts")),
    )
