"""Answers of creating requests, kept under their Idempotency-Key and given again.

The first request with a key claims it, in a row of its own that is committed before the work
begins; what it answers with success is written there. A second one gets that answer, or 409 while
the first still runs, or 422 if it asks for something else. A request that is refused or fails gives
its claim up, so that it can be sent again, put right.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import Header
from sqlalchemy import and_, delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError
from starlette.requests import Request
from starlette.responses import Response

from fragdex.service.errors import Conflict, IdempotencyMismatch, InvalidRequest
from fragdex.service.house import House
from fragdex.service.records.tables import replays

__all__ = ["forget", "idempotency_key", "replayed"]

MAX_KEY = 255
ABANDONED = timedelta(seconds=60)
"""After so long, a first request that has not answered is taken to be dead."""

KEPT_HEADERS = frozenset({"content-type", "location", "etag"})
REPLAYED = "Idempotency-Replayed"


async def idempotency_key(
    key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            max_length=MAX_KEY,
            description="The same key with the same body gives the first answer again.",
        ),
    ] = None,
) -> None:
    """Mark a route, by `Depends(idempotency_key)`, as one whose answers are kept."""


@dataclass(frozen=True, slots=True)
class _Claim:
    tenant_id: str
    key: str
    request_hash: bytes
    at: datetime

    @property
    def row(self) -> Any:
        return and_(replays.c.tenant_id == self.tenant_id, replays.c.key == self.key)


async def replayed(
    request: Request,
    tenant_id: str,
    body: bytes,
    handler: Callable[[Request], Awaitable[Response]],
) -> Response:
    """The first answer to this request, whenever that was; `handler` gives it if it is now."""
    key = request.headers["idempotency-key"]
    if not 0 < len(key) <= MAX_KEY:
        raise InvalidRequest(
            f"an Idempotency-Key has 1 to {MAX_KEY} characters", pointer="Idempotency-Key"
        )
    house: House = request.app.state.house
    asked = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
    claimed = await run_sync(_claim, house, tenant_id, key, hashlib.sha256(asked + body).digest())
    if isinstance(claimed, Response):
        return claimed
    kept = False
    try:
        response = await handler(request)
        if 200 <= response.status_code < 300:
            await run_sync(_keep, house, claimed, response)
            kept = True
        return response
    finally:
        if not kept:
            await run_sync(_give_up, house, claimed)


def _claim(house: House, tenant_id: str, key: str, request_hash: bytes) -> _Claim | Response:
    with house.database.read() as connection:
        now = house.database.now(connection)
    claim = _Claim(tenant_id, key, request_hash, now)
    outdated = or_(
        replays.c.created_at < now - timedelta(hours=house.settings.replay_hours),
        and_(replays.c.status.is_(None), replays.c.created_at < now - ABANDONED),
    )
    try:
        with house.database.write() as connection:
            connection.execute(delete(replays).where(claim.row, outdated))
            connection.execute(
                insert(replays).values(
                    tenant_id=tenant_id, key=key, request_hash=request_hash, created_at=now
                )
            )
        return claim
    except IntegrityError:
        pass
    with house.database.read() as connection:
        first = connection.execute(select(replays).where(claim.row)).first()
    if first is not None and first.request_hash != request_hash:
        raise IdempotencyMismatch(
            "this Idempotency-Key was sent with another request", pointer="Idempotency-Key"
        )
    if first is None or first.status is None:
        raise Conflict("the first request with this Idempotency-Key is running", retry_after=1)
    return Response(first.body, first.status, {**first.headers, REPLAYED: "true"})


def _keep(house: House, claim: _Claim, response: Response) -> None:
    headers = {name: value for name, value in response.headers.items() if name in KEPT_HEADERS}
    values = {"status": response.status_code, "headers": headers, "body": bytes(response.body)}
    mine = and_(claim.row, replays.c.created_at == claim.at)
    with house.database.write() as connection:
        connection.execute(update(replays).where(mine).values(**values))


def _give_up(house: House, claim: _Claim) -> None:
    mine = and_(claim.row, replays.c.created_at == claim.at, replays.c.status.is_(None))
    with house.database.write() as connection:
        connection.execute(delete(replays).where(mine))


def forget(house: House) -> int:
    """Drop answers older than `replay_hours`; returns how many."""
    with house.database.write() as connection:
        before = house.database.now(connection) - timedelta(hours=house.settings.replay_hours)
        return connection.execute(delete(replays).where(replays.c.created_at < before)).rowcount
