"""What records have let go may be deleted early, what is being written may not."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Note when an object was let go."""
    op.add_column("fragdex_trash", sa.Column("let_go_at", sa.DateTime(timezone=True)))
