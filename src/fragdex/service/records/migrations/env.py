"""How Alembic runs the steps: in the transaction of `upgrade`, which begins and commits it."""

from __future__ import annotations

from alembic import context

from fragdex.service.records.migrations import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
context.run_migrations()
