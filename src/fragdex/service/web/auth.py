"""Who asks: an API key or a URL token, as `Authorization: Bearer …`.

GET and HEAD take a URL token also as `?token=…`, for elements of web pages that send no headers;
a key never stands in a URL.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import Depends, Request
from sqlalchemy import select

from fragdex.service.errors import Forbidden, Unauthenticated
from fragdex.service.house import House
from fragdex.service.records import keys, tables
from fragdex.service.web import tokens
from fragdex.service.web.rates import Rates

__all__ = [
    "SCHEME",
    "SECURITY_SCHEMES",
    "Asking",
    "Caller",
    "Doorman",
    "InHouse",
    "authenticate",
    "bearer_of",
    "own_origin",
    "the_house",
]

REMEMBER_SECONDS = 5
"""How long a key that was found is believed; so long may a revoked one still open."""

MAX_REMEMBERED = 10_000
MAX_BEARER = 4096


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks; `grant` is what a URL token opens, None for a key."""

    tenant_id: str
    key_id: str
    grant: tokens.Grant | None = None


class Doorman:
    """Tells callers from their bearers; remembers those it let in for a few seconds."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._rates = Rates(house.settings.rate_limit, house.settings.rate_burst)
        self._known: OrderedDict[str, tuple[Caller, float]] = OrderedDict()
        self._signing: bytes | None = None

    async def caller(self, bearer: str, *, count: bool = True) -> Caller:
        """Who `bearer` is, within its rate; `count=False` where the same request asks twice.

        Raises:
            Unauthenticated: nobody we know.
            TooManyRequests: over the key's rate.
        """
        known = self._known.get(bearer)
        if known is None or known[1] < time.monotonic():
            caller = await run_sync(self._look_up, bearer)
            self._known[bearer] = caller, time.monotonic() + REMEMBER_SECONDS
            self._known.move_to_end(bearer)
            if len(self._known) > MAX_REMEMBERED:
                self._known.popitem(last=False)
        else:
            caller = known[0]
        if count:
            self._rates.take(caller.key_id)
        return caller

    def remembered(self, bearer: str) -> str | None:
        """The tenant of a key that was let in a moment ago; None for all others."""
        known = self._known.get(bearer)
        if known is None or known[1] < time.monotonic() or known[0].grant is not None:
            return None
        return known[0].tenant_id

    def signing_secret(self) -> bytes:
        """What URL tokens are signed with; the same in every process."""
        if self._signing is None:
            self._signing = keys.secret(self._house.database, "url-tokens")
        return self._signing

    def _look_up(self, bearer: str) -> Caller:
        if len(bearer) > MAX_BEARER:
            raise Unauthenticated("this is no key")
        if bearer.count(".") == 2:
            grant = tokens.read_token(self.signing_secret(), bearer)
            self._need_living(grant.key_id)
            return Caller(grant.tenant_id, grant.key_id, grant)
        key = keys.find_key(self._house.database, bearer)
        return Caller(key.tenant_id, key.id)

    def _need_living(self, key_id: str) -> None:
        living = select(tables.keys.c.id).where(
            tables.keys.c.id == key_id, tables.keys.c.revoked_at.is_(None)
        )
        with self._house.database.read() as connection:
            if connection.execute(living).first() is None:
                raise Unauthenticated("the key that signed this token was revoked")


def the_house(request: Request) -> House:
    """The house of this application; routes have it as `house: InHouse`."""
    house: House = request.app.state.house
    return house


def own_origin(request: Request) -> str:
    """Scheme, host and port under which the caller sees this service."""
    public = the_house(request).settings.public_url
    return public or tokens.origin_of(request.url.scheme, request.url.netloc)


SCHEME = "key"
SECURITY_SCHEMES = {
    SCHEME: {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key (`ef_…_…`), or a URL token for GET and HEAD of its URL.",
    }
}
"""What the OpenAPI document says of it; FastAPI's own dependency costs every request a detour."""


def bearer_of(request: Request) -> str | None:
    """What stands behind `Bearer` in Authorization, if anything."""
    kind, _, bearer = request.headers.get("authorization", "").partition(" ")
    return bearer.strip() or None if kind.lower() == "bearer" else None


async def authenticate(request: Request) -> Caller:
    """The caller of a request.

    Raises:
        Unauthenticated: no bearer, or an unknown one.
        Forbidden: a URL token that does not open this.
    """
    doorman: Doorman = request.app.state.doorman
    bearer = bearer_of(request)
    if bearer is None:
        bearer = request.query_params.get("token", "")
        if bearer.count(".") != 2:
            raise Unauthenticated("send `Authorization: Bearer` with a key of this service")
    caller = await doorman.caller(bearer)
    grant = caller.grant
    if grant is not None and not grant.opens(request.method, own_origin(request), request["path"]):
        raise Forbidden("this token opens another URL")
    return caller


async def _house_of(request: Request) -> House:
    # FastAPI runs dependencies that are not async in threads, one visit each
    return the_house(request)


Asking = Annotated[Caller, Depends(authenticate)]
InHouse = Annotated[House, Depends(_house_of)]
