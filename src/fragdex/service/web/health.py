"""`/healthz`: the process answers. `/readyz`: so do database and store. `/metrics`: its numbers."""

from __future__ import annotations

import logging
from collections.abc import Callable

import sqlalchemy as sa
from fastapi import APIRouter, Request, Response
from starlette.responses import JSONResponse

from fragdex.errors import FragdexError
from fragdex.service.house import House
from fragdex.service.web.auth import the_house

__all__ = ["router"]

log = logging.getLogger("fragdex.service")
router = APIRouter(tags=["health"])

READY = {"content": {"application/json": {"schema": {"type": "object"}}}}


@router.get(
    "/healthz",
    response_class=Response,
    responses={200: {"description": "The process answers", **READY}},
)
async def healthz() -> Response:
    """Whether the process answers; asks nobody else."""
    return JSONResponse({"status": "ok"})


@router.get(
    "/readyz",
    response_class=Response,
    responses={
        200: {"description": "Database and store answer", **READY},
        503: {"description": "One of them does not, or the service is ending", **READY},
    },
)
def readyz(request: Request) -> Response:
    """Whether requests can be answered now: database, store, and no end in sight."""
    house = the_house(request)
    found = {
        "database": _checked(lambda: _ask_database(house)),
        "store": _checked(house.store.check),
        "draining": "yes" if request.app.state.draining.is_set() else "no",
    }
    ready = found == {"database": "ok", "store": "ok", "draining": "no"}
    content = {"status": "ok" if ready else "unavailable", **found}
    return JSONResponse(content, 200 if ready else 503)


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {
            "description": "Numbers for Prometheus",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        }
    },
)
def metrics(request: Request) -> Response:
    """The numbers of this process, in Prometheus' text form."""
    return Response(
        request.app.state.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8"
    )


def _ask_database(house: House) -> None:
    with house.database.read() as connection:
        connection.execute(sa.text("SELECT 1"))


def _checked(ask: Callable[[], object]) -> str:
    try:
        ask()
    except (FragdexError, OSError, sa.exc.SQLAlchemyError) as error:
        log.warning("not ready: %s", error)
        return "does not answer"
    return "ok"
