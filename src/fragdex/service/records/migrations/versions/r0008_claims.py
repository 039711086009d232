"""An Idempotency-Key belongs to a process that is alive."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Note until when a first request is known to run."""
    op.add_column("fragdex_replays", sa.Column("alive_until", sa.DateTime(timezone=True)))
