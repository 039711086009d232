"""Whose work a job is, when it ended, and the turns that tenants take."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Make them."""
    op.add_column("fragdex_jobs", sa.Column("tenant_id", sa.String(36)))
    op.add_column("fragdex_jobs", sa.Column("turn", sa.BigInteger()))
    op.add_column("fragdex_jobs", sa.Column("ended_at", sa.DateTime(timezone=True)))
    index = op.f("ix_fragdex_jobs_tenant_id_ended_at")
    op.create_index(index, "fragdex_jobs", ["tenant_id", "ended_at"], unique=False)
    op.create_table(
        "fragdex_turns",
        sa.Column("queue", sa.String(40), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("next", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("queue", "tenant_id", name=op.f("pk_fragdex_turns")),
    )
