"""Indexes for every look-up of the service, and when an upload got its last byte."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_INDEXES = (
    ("blobs", "store_key"),
    ("blob_uses", "family", "record_id"),
    ("trash", "delete_after"),
    ("uploads", "draft"),
    ("replays", "created_at"),
    ("image_files", "expires_at"),
    ("caption_files", "expires_at"),
    ("unprocessed_files", "expires_at"),
    ("isobmff_files", "expires_at"),
    ("render_slices", "expires_at"),
)


def upgrade() -> None:
    """Make them."""
    op.add_column("fragdex_uploads", sa.Column("written_at", sa.DateTime(timezone=True)))
    for table, *columns in _INDEXES:
        name = op.f(f"ix_fragdex_{table}_{'_'.join(columns)}")
        op.create_index(name, f"fragdex_{table}", columns, unique=False)
