"""Bytes are told apart by their SHA-256: two files may have one md5."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_OF_BLOB = (
    "(SELECT b.sha256 FROM fragdex_blobs b"
    " WHERE b.tenant_id = {table}.tenant_id AND b.md5 = {table}.md5)"
)


def upgrade() -> None:
    """Give every use of bytes, and every video, the SHA-256; objects keep their keys."""
    for table in ("uploads", "unprocessed_files", "isobmff_files", "blob_uses"):
        table = f"fragdex_{table}"
        op.add_column(table, sa.Column("sha256", sa.LargeBinary(length=32)))
        # an upload's own is known when its last byte is here
        if table != "fragdex_uploads":
            op.execute(f"UPDATE {table} SET sha256 = {_OF_BLOB.format(table=table)}")
    op.execute("DELETE FROM fragdex_blob_uses WHERE sha256 IS NULL")
    # Nothing refers to these two, so SQLite may make them anew.
    with op.batch_alter_table("fragdex_blob_uses") as uses:
        uses.drop_constraint(op.f("pk_fragdex_blob_uses"), type_="primary")
        uses.alter_column("sha256", existing_type=sa.LargeBinary(length=32), nullable=False)
        uses.drop_column("md5")
        uses.create_primary_key(
            op.f("pk_fragdex_blob_uses"), ["tenant_id", "sha256", "family", "record_id"]
        )
    with op.batch_alter_table("fragdex_blobs") as blobs:
        blobs.drop_constraint(op.f("pk_fragdex_blobs"), type_="primary")
        blobs.create_primary_key(op.f("pk_fragdex_blobs"), ["tenant_id", "sha256"])
    name = op.f("ix_fragdex_blobs_tenant_id_md5")
    op.create_index(name, "fragdex_blobs", ["tenant_id", "md5"], unique=False)
