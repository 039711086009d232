"""Uploads whose length nobody has said yet; who speaks in transcriptions.

Processes of the version before go on beside those of this one; of such an upload alone they can
tell nothing.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"

_TABLES: Final = ("fragdex_uploads", "fragdex_files", "fragdex_tus_uploads")


def upgrade() -> None:
    """Let `byte_size` be null in the tables of uploads and their files; add a table of speakers."""
    op.create_table(
        "fragdex_transcription_speakers",
        sa.Column("transcription_id", sa.String(36), nullable=False),
        sa.Column("turns", sa.JSON()),
        sa.Column("speakers", sa.Integer()),
        sa.Column("names", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("transcription_id", name="pk_fragdex_transcription_speakers"),
        sa.ForeignKeyConstraint(
            ["transcription_id"],
            ["fragdex_transcriptions.id"],
            name="fk_fragdex_transcription_speakers_transcription_id",
            ondelete="CASCADE",
        ),
    )
    if op.get_bind().dialect.name != "sqlite":
        for name in _TABLES:
            op.alter_column(name, "byte_size", nullable=True)
        return
    # No row changes where a column may be null from now on: SQLite's own way is to change the
    # text of the table (https://sqlite.org/lang_altertable.html, section 7). Making it again
    # would copy every row, and the rows of other tables name these.
    connection = op.get_bind()
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    connection.exec_driver_sql("PRAGMA writable_schema=ON")
    for name in _TABLES:
        changed = connection.execute(
            sa.text(
                "UPDATE sqlite_master SET sql = replace(sql, :before, :after)"
                " WHERE type = 'table' AND name = :name AND instr(sql, :before)"
            ),
            {"name": name, "before": "byte_size BIGINT NOT NULL", "after": "byte_size BIGINT"},
        )
        assert changed.rowcount == 1, name
    connection.exec_driver_sql(f"PRAGMA schema_version={version + 1}")
    connection.exec_driver_sql("PRAGMA writable_schema=OFF")
