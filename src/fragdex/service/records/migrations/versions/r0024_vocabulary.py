"""Names and terms that a transcription prefers.

Processes of the version before go on beside those of this one: they write none.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    """Add the column `vocabulary` to transcriptions."""
    op.add_column("fragdex_transcriptions", sa.Column("vocabulary", sa.Text()))
