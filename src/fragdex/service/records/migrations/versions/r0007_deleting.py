"""Objects are deleted between two transactions, and no key is written twice."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Note which objects are being deleted, and what an upload's draft becomes."""
    op.add_column("fragdex_trash", sa.Column("deleting_at", sa.DateTime(timezone=True)))
    op.add_column("fragdex_uploads", sa.Column("object_key", sa.Text()))
