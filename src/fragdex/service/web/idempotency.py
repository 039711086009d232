"""Answers of creating requests, kept under their Idempotency-Key and given again.

The first request with a key claims it, in a row of its own that is committed before the work
begins; what it answers with success is written there. A second one gets that answer, or 409 while
the first still runs, or 422 if it requests something else. A request that is refused or fails gives
its claim up, so that it can be sent again, put right.

A claim lasts as long as its process says that the request runs. A process that died says nothing,
and one that could not give a claim up, because the database was away, remembers it: whoever comes
next with the key is the first.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Annotated, Any, Protocol

from anyio import CancelScope
from anyio.to_thread import run_sync
from fastapi import Header
from sqlalchemy import and_, delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError
from starlette.requests import Request
from starlette.responses import Response

from fragdex.errors import FragdexError, IdempotencyMismatch, InvalidRequest, RequestRunning
from fragdex.record import record
from fragdex.service.context import ServiceContext
from fragdex.service.records.tables import replays
from fragdex.service.records.tenant_limits import ensure_within_quota

MAX_KEY = 255
LEASE = timedelta(seconds=10)
"""A process that has not said for so long that a first request runs is taken to be dead."""

BEAT_S = 2.0
"""How often it says so."""

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


class ShownOnce(Protocol):
    """Keeps a secret out of the answers that are kept."""

    def without(self, body: bytes) -> bytes:
        """The stored part of an answer."""

    def again(self, request: Request, saved: bytes) -> bytes:
        """The first answer, as the same request gets it again.

        Raises:
            Conflict: it cannot be given any more.
        """


@record(frozen=True, slots=True)
class _Claim:
    tenant_id: str
    key: str
    request_hash: bytes
    at: datetime

    @property
    def name(self) -> tuple[str, str]:
        return self.tenant_id, self.key

    @property
    def row(self) -> Any:
        return and_(replays.c.tenant_id == self.tenant_id, replays.c.key == self.key)


class _Claims:
    """The claims of this process.

    Attributes:
        running: those whose request runs: they are taken by nobody, whatever the clock says.
        left: those that could not be given up, and when they were made: taken at once.
    """

    def __init__(self) -> None:
        self.running: set[tuple[str, str]] = set()
        self.left: dict[tuple[str, str], datetime] = {}

    def close(self) -> None:
        """Forget them; leases end by themselves."""
        self.running.clear()
        self.left.clear()


async def replayed(
    request: Request,
    tenant_id: str,
    body: bytes,
    handler: Callable[[Request], Awaitable[Response]],
    secret: ShownOnce | None = None,
) -> Response:
    """The first answer to this request, whenever that was; `handler` gives it if it is now.

    Args:
        secret: of the answer, which is not kept.
    """
    key = request.headers["idempotency-key"]
    if not 0 < len(key) <= MAX_KEY:
        raise InvalidRequest(
            f"an Idempotency-Key has 1 to {MAX_KEY} characters", header="Idempotency-Key"
        )
    context: ServiceContext = request.app.state.context
    request_line = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
    claimed = await run_sync(
        _claim, context, tenant_id, key, hashlib.sha256(request_line + body).digest()
    )
    if isinstance(claimed, Response):
        if secret is None:
            return claimed
        again = await run_sync(secret.again, request, bytes(claimed.body))
        headers = {name: claimed.headers[name] for name in (*KEPT_HEADERS, REPLAYED)
                   if name in claimed.headers}  # fmt: skip
        return Response(again, claimed.status_code, headers)
    is_saved = False
    alive = asyncio.create_task(_stay_alive(context, claimed))
    try:
        response = await handler(request)
        if 200 <= response.status_code < 300:
            await run_sync(_save_answer, context, claimed, response, secret)
            is_saved = True
        return response
    finally:
        alive.cancel()
        context.part(_Claims).running.discard(claimed.name)
        if not is_saved:
            # an outage must not hide why the request failed
            with suppress(FragdexError), CancelScope(shield=True):
                await run_sync(_give_up, context, claimed)


async def _stay_alive(context: ServiceContext, claim: _Claim) -> None:
    while True:
        await asyncio.sleep(BEAT_S)
        with suppress(FragdexError):
            await run_sync(_renew, context, claim)


def _renew(context: ServiceContext, claim: _Claim) -> None:
    mine = and_(claim.row, replays.c.created_at == claim.at, replays.c.status.is_(None))
    with context.database.write(passing=True) as connection:
        until = context.database.now(connection) + LEASE
        connection.execute(update(replays).where(mine).values(alive_until=until))


def _claim(
    context: ServiceContext, tenant_id: str, key: str, request_hash: bytes
) -> _Claim | Response:
    with context.database.read() as connection:
        now = context.database.now(connection)
    claim, own = _Claim(tenant_id, key, request_hash, now), context.part(_Claims)
    since = func.coalesce(replays.c.alive_until, replays.c.created_at)
    over = [since < now]
    if (left := own.left.get(claim.name)) is not None:
        over.append(replays.c.created_at == left)
    outdated = or_(
        replays.c.created_at < now - timedelta(hours=context.settings.replay_hours),
        and_(replays.c.status.is_(None), or_(*over)),
    )
    if claim.name in own.running:
        raise _busy()
    try:
        with context.database.write() as connection:
            connection.execute(delete(replays).where(claim.row, outdated))
            connection.execute(
                insert(replays).values(
                    tenant_id=tenant_id,
                    key=key,
                    request_hash=request_hash,
                    created_at=now,
                    alive_until=now + LEASE,
                )
            )
            ensure_within_quota(connection, tenant_id)
        own.running.add(claim.name)
        own.left.pop(claim.name, None)
        return claim
    except IntegrityError:
        pass
    first = context.database.first(select(replays).where(claim.row))
    if first is not None and first.request_hash != request_hash:
        raise IdempotencyMismatch(
            "this Idempotency-Key was sent with another request", header="Idempotency-Key"
        )
    if first is None or first.status is None:
        raise _busy()
    return Response(first.body, first.status, {**first.headers, REPLAYED: "true"})


def _busy() -> RequestRunning:
    return RequestRunning("the first request with this Idempotency-Key is running", retry_after=1)


def _save_answer(
    context: ServiceContext, claim: _Claim, response: Response, secret: ShownOnce | None
) -> None:
    headers = {name: value for name, value in response.headers.items() if name in KEPT_HEADERS}
    body = bytes(response.body)
    saved = body if secret is None else secret.without(body)
    values = {"status": response.status_code, "headers": headers, "body": saved}
    mine = and_(claim.row, replays.c.created_at == claim.at)
    context.database.change(update(replays).where(mine).values(**values))


def _give_up(context: ServiceContext, claim: _Claim) -> None:
    mine = and_(claim.row, replays.c.created_at == claim.at, replays.c.status.is_(None))
    left = context.part(_Claims).left
    left[claim.name] = claim.at
    context.database.change(delete(replays).where(mine))
    left.pop(claim.name, None)


def forget(context: ServiceContext) -> int:
    """Drop answers older than `replay_hours`; returns how many."""
    with context.database.write() as connection:
        before = context.database.now(connection) - timedelta(hours=context.settings.replay_hours)
        return connection.execute(delete(replays).where(replays.c.created_at < before)).rowcount
