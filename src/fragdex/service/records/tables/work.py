"""Work that is to be done, and the processes that do it."""

from __future__ import annotations

from sqlalchemy import JSON, Column, Integer, String

from fragdex.service.records.tables.columns import at, table

__all__ = ["executors", "jobs"]

jobs = table(
    "jobs",
    Column("id", String(120), primary_key=True),
    Column("name", String(40), nullable=False),
    # begun that often; also what tells a run that another one has taken its place
    Column("attempt", Integer, nullable=False, default=0),
    # why the last attempt failed; null while one runs
    Column("problem", JSON),
    at("created_at", needed=True),
    at("cancelled_at"),
)

executors = table(
    "executors",
    Column("id", String(80), primary_key=True),
    at("seen_at", needed=True),
)
