"""Two ISOBMFF files may have one md5: they are told apart by their SHA-256, as bytes are."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

_TABLE = "fragdex_isobmff_files"


def upgrade() -> None:
    """Let a tenant have one of each SHA-256, and one of which only the md5 is known."""
    with op.batch_alter_table(_TABLE) as files:
        files.drop_constraint(op.f(f"uq_{_TABLE}_tenant_id_md5"), type_="unique")
    name = op.f(f"ix_{_TABLE}_tenant_id_md5_sha256")
    op.create_index(name, _TABLE, ["tenant_id", "md5", "sha256"], unique=True)
    unknown = sa.text("sha256 IS NULL")
    op.create_index(
        op.f(f"ix_{_TABLE}_unknown"),
        _TABLE,
        ["tenant_id", "md5"],
        unique=True,
        sqlite_where=unknown,
        postgresql_where=unknown,
    )
