"""Timelines over HTTP."""

from __future__ import annotations

from fragdex.errors import InvalidRequest, RecordNotFound
from fragdex.service.records.pages import DEFAULT_LIMIT
from fragdex.service.streaming.routes import title_routes
from fragdex.service.timelines import operations
from fragdex.service.timelines.model import NewTimeline, TimelineList, TimelineRecord
from fragdex.service.uploads.family import Family
from fragdex.service.web.auth import Asking, InContext
from fragdex.service.web.fields import Cursor, Limit
from fragdex.service.web.routing import api_router

router = api_router("timelines")
routes = Family(router, "/timelines", "timeline")

routes.creation(
    NewTimeline,
    TimelineRecord,
    operations.create_timeline,
    InvalidRequest,
    RecordNotFound,
    description="Join files into one timeline. Nothing is copied, and the files are unchanged.",
    always_new=True,
)


@router.get("/timelines")
def list_timelines(
    caller: Asking, context: InContext, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> TimelineList:
    """Timelines, newest first."""
    return operations.TIMELINES.page(context, caller.tenant_id, limit, cursor, None)


routes.record(TimelineRecord, operations.TIMELINES.get)
routes.deletion(operations.delete_timeline, description="Delete a timeline; its files stay.")
title_routes(router, "/timelines/{id}", "timeline", operations.title_of_timeline)
