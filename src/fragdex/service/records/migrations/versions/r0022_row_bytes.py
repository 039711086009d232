"""What each row of a tenant counts with, worked out by the database; repairs of files.

`schema` says whose processes may use these tables.

Nothing is taken away, so that processes of the version before go on beside those of this one: they
name the columns that they write, and know nothing of this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"

# table: texts and bytes, JSON
_COUNTED: Final[Mapping[str, tuple[str, str]]] = {
    "renders": ("", "metadata wanted seconds notes problem"),
    "render_slices": ("", "reads made"),
    "files": ("filename", "problem"),
    "isobmff_files": ("filename", ""),
    "isobmff_tracks": ("", "probe_info"),
    "repairs": ("", "wanted report problem"),
    "timelines": ("name", "files"),
    "tus_uploads": ("filename metadata concat", ""),
    "webhook_deliveries": ("body response_body problem", ""),
    "replays": ("body", "headers"),
    "transcriptions": ("", "plan missing seconds problem copy_problem"),
}

_OWNERS: Final = ("tenant", "file")


def upgrade() -> None:
    """Add the column and an index of it to each table, and the tables `schema` and `repairs`."""
    op.create_table(
        "fragdex_schema",
        sa.Column("version", sa.String(10), nullable=False),
        sa.Column("compatible_since", sa.String(10), nullable=False),
        sa.PrimaryKeyConstraint("version", name="pk_fragdex_schema"),
    )
    _create_repairs()
    op.create_index("ix_fragdex_processes_tenant_id", "fragdex_processes", ["tenant_id"])
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    for name, (plain, json) in _COUNTED.items():
        if is_sqlite:
            sizes = [f"length(CAST({one} AS BLOB))" for one in (plain + " " + json).split()]
        else:
            texts = [*plain.split(), *(f"CAST({one} AS TEXT)" for one in json.split())]
            sizes = [f"octet_length({one})" for one in texts]
        whole = " + ".join(["256", *(f"coalesce({size}, 0)" for size in sizes)])
        # SQLite adds no column that it would have to write in every row; its index has the number
        how = "VIRTUAL" if is_sqlite else "STORED"
        op.execute(
            f"ALTER TABLE fragdex_{name} ADD COLUMN row_bytes BIGINT"
            f" GENERATED ALWAYS AS ({whole}) {how}"
        )
        index = f"ix_fragdex_{name}_tenant_id_row_bytes"
        op.create_index(index, f"fragdex_{name}", ["tenant_id", "row_bytes"])


def _create_repairs() -> None:
    instant, id_ = sa.DateTime(timezone=True), sa.String(36)
    op.create_table(
        "fragdex_repairs",
        sa.Column("id", id_, nullable=False),
        *(sa.Column(f"{name}_id", id_, nullable=False) for name in _OWNERS),
        sa.Column("wanted", sa.JSON(), nullable=False),
        sa.Column("like_file_id", id_),
        sa.Column("repaired_file_id", id_),
        sa.Column("report", sa.JSON()),
        sa.Column("progress", sa.Float(), nullable=False),
        sa.Column("problem", sa.JSON()),
        sa.Column("created_at", instant, nullable=False),
        *(sa.Column(name, instant) for name in ("started_at", "completed_at", "failed_at")),
        sa.PrimaryKeyConstraint("id", name="pk_fragdex_repairs"),
        *(
            sa.ForeignKeyConstraint(
                [f"{name}_id"],
                [f"fragdex_{name}s.id"],
                name=f"fk_fragdex_repairs_{name}_id",
                ondelete="CASCADE",
            )
            for name in _OWNERS
        ),
    )
    op.create_index("ix_fragdex_repairs_file_id", "fragdex_repairs", ["file_id"])
    op.create_index("ix_fragdex_repairs_tenant_id_id", "fragdex_repairs", ["tenant_id", "id"])
