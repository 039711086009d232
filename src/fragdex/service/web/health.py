"""`/healthz`: the process answers. `/readyz`: so do database and store. `/metrics`: metrics."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Literal

import sqlalchemy as sa
from fastapi import APIRouter, Request, Response
from pydantic import ConfigDict, Field
from starlette.responses import JSONResponse

from fragdex.errors import FragdexError
from fragdex.service.context import ServiceContext
from fragdex.service.logs import explained
from fragdex.service.metrics import CONTENT_TYPE
from fragdex.service.store.disk_files import disks_nearly_full
from fragdex.service.web.auth import the_context
from fragdex.service.web.fields import ApiModel
from fragdex.service.web.routing import HeadRoute, operation_id

log = logging.getLogger("fragdex.service")
router = APIRouter(tags=["health"], route_class=HeadRoute, generate_unique_id_function=operation_id)


class Health(ApiModel):
    """That the process answers."""

    status: Literal["ok"]


class Readiness(ApiModel):
    """Whether requests can be answered, and what answers: `ok`, or why not."""

    model_config = ConfigDict(extra="allow")

    status: str = Field(description="`ok` or `unavailable`")
    database: str
    store: str
    draining: str
    browser: str = Field(description="its version, `not found`, or `not used here`")
    engine: str = Field(
        description="the speech engine and its version, what it lacks, or `not used here`; the "
        "service is available either way"
    )
    disk: str = Field(description="`ok` or `nearly full`; the service is available either way")


@router.get(
    "/healthz",
    name="get_health",
    response_class=Response,
    responses={200: {"description": "The process answers", "model": Health}},
)
async def healthz() -> Response:
    """200 while the process runs; checks nothing else."""
    return JSONResponse({"status": "ok"})


@router.get(
    "/readyz",
    name="get_readiness",
    response_class=Response,
    responses={
        200: {"description": "Requests can be answered", "model": Readiness},
        503: {
            "description": "Database or store does not answer, the service is ending, or "
            "`ready_needs_browser` is set and no browser was found",
            "model": Readiness,
        },
    },
)
def readyz(request: Request) -> Response:
    """200 if requests can be answered: database and store answer, and the process is not draining.

    It also names the browser, the speech engine and how full the disks are.
    """
    context, state = the_context(request), request.app.state
    ending = state.ending or state.draining.is_set()
    checks = {
        "database": _checked(lambda: _ask_database(context)),
        "store": _checked(context.store.check),
        "draining": "yes" if ending else "no",
    }
    ready = checks == {"database": "ok", "store": "ok", "draining": "no"}
    # without a browser all but renders is answered
    checks["browser"] = state.browser()
    checks["engine"] = state.engine()
    if context.settings.ready_needs_browser and state.has_no_browser(checks["browser"]):
        ready = False
    # what is here can be read and deleted, which makes room
    checks["disk"] = "nearly full" if disks_nearly_full(context.settings) else "ok"
    content = {"status": "ok" if ready else "unavailable", **checks}
    return JSONResponse(content, 200 if ready else 503)


@router.get(
    "/metrics",
    name="get_metrics",
    response_class=Response,
    responses={
        200: {
            "description": "Metrics for Prometheus",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        }
    },
)
def metrics(request: Request) -> Response:
    """Metrics of this process and of the installation, in Prometheus' text format."""
    return Response(the_context(request).metrics.text(), media_type=CONTENT_TYPE)


def _ask_database(context: ServiceContext) -> None:
    with context.database.read() as connection:
        connection.execute(sa.text("SELECT 1"))


def _checked(ask: Callable[[], object]) -> str:
    try:
        ask()
    except (FragdexError, OSError, sa.exc.SQLAlchemyError) as error:
        log.warning("not ready: %s", explained(error))
        return "does not answer"
    return "ok"
