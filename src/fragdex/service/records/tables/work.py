"""Work that is to be done, and the processes that do it."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Column, Index, Integer, String, text

from fragdex.service.records.tables.columns import at, table

__all__ = ["executors", "jobs", "turns"]

jobs = table(
    "jobs",
    Column("id", String(120), primary_key=True),
    Column("name", String(40), nullable=False),
    # begun that often; also what tells a run that another one has taken its place
    Column("attempt", Integer, nullable=False, default=0),
    # why the last attempt failed; null while one runs
    Column("problem", JSON),
    # from when on it waits: of a delayed one, when it may begin
    at("created_at", needed=True),
    at("cancelled_at"),
    # whose work it is; null for slices, whose job says it
    Column("tenant_id", String(36)),
    # its number in its queue; null for one that was forgotten and found in the queue
    Column("turn", BigInteger),
    # null for slices, and as long as a job is not over
    at("ended_at"),
)
Index(None, jobs.c.tenant_id, jobs.c.ended_at)
# What waits and what runs, of all tenants.
_GOING = text("tenant_id IS NOT NULL AND ended_at IS NULL AND cancelled_at IS NULL")
Index(
    None,
    jobs.c.name,
    jobs.c.attempt,
    jobs.c.created_at,
    sqlite_where=_GOING,
    postgresql_where=_GOING,
)

# Slices that wait; of those that were begun nobody asks.
_WAITING_SLICES = text("tenant_id IS NULL AND attempt = 0 AND cancelled_at IS NULL")
Index(
    "ix_fragdex_jobs_waiting_slices",
    jobs.c.name,
    sqlite_where=_WAITING_SLICES,
    postgresql_where=_WAITING_SLICES,
)

executors = table(
    "executors",
    Column("id", String(80), primary_key=True),
    at("seen_at", needed=True),
)

turns = table(
    "turns",
    Column("queue", String(40), primary_key=True),
    # empty: of nobody, the number that was begun last
    Column("tenant_id", String(36), primary_key=True),
    # the number of this tenant's next piece of work
    Column("next", BigInteger, nullable=False),
)
