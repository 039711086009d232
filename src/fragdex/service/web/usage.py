"""`GET /api/v1/usage`: what the caller's tenant uses, and how much it may."""

from __future__ import annotations

from pydantic import Field

from fragdex.service.records.tenant_limits import limits_of, row_bytes, stored_bytes
from fragdex.service.web.auth import Asking, InContext
from fragdex.service.web.fields import ApiModel
from fragdex.service.web.key_routes import KeyScope
from fragdex.service.web.routing import api_router

__all__ = ["router"]

router = api_router("usage")


class UsageLimits(ApiModel):
    """How much the tenant may use."""

    max_stored_bytes: int | None = Field(description="null: no limit")
    max_render_seconds: float = Field(description="of work on the slices of one render")
    max_render_cost: float | None = Field(
        description="seconds of processor time of the slices of one render; null: no limit"
    )
    max_jobs: int = Field(description="unfinished jobs")
    retention_days: float | None = Field(
        description="after which files and finished renders are deleted; null: never"
    )


class Usage(ApiModel):
    """What the tenant uses now."""

    stored_bytes: int = Field(
        description="in the store, once per SHA-256, with the announced sizes of unfinished uploads"
    )
    row_bytes: int = Field(
        description="of its records: names, metadata, data, events, answers kept for an"
        " Idempotency-Key, and 256 a record; the limit of stored bytes holds for them, too,"
        " if it is over 1 MiB"
    )
    jobs: int = Field(description="unfinished jobs")
    scope: KeyScope = Field(description="of the key that asks: what it may do")
    limits: UsageLimits


@router.get("/usage")
def get_usage(caller: Asking, context: InContext) -> Usage:
    """What the tenant of the key stores and has in progress, and how much it may."""
    settings = context.settings
    with context.database.read() as connection:
        own = limits_of(connection, caller.tenant_id)
        stored = stored_bytes(connection, caller.tenant_id)
        rows = row_bytes(connection, caller.tenant_id)
        jobs = context.jobs.unfinished(connection, caller.tenant_id)
    limits = UsageLimits(
        max_stored_bytes=own.max_stored_bytes,
        max_render_seconds=own.max_render_seconds or settings.max_render_work_seconds,
        max_render_cost=own.max_render_cost,
        max_jobs=own.max_jobs or settings.max_tenant_jobs,
        retention_days=own.retention_days,
    )
    return Usage(
        stored_bytes=stored,
        row_bytes=rows,
        jobs=jobs,
        scope=KeyScope(caller.scope),
        limits=limits,
    )
