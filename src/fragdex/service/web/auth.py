"""The caller: an API key or a URL token, as `Authorization: Bearer …`.

GET and HEAD take a URL token also as `?token=…`, for elements of web pages that send no headers;
a key never stands in a URL.

A URL token opens GET and HEAD of one URL, and what lies below it. Parameters may be named that each
request has to have, such as the `url` of media elsewhere. It is a JWT (RFC 7519, HS256) with
`exp`, so that players can tell when to fetch another. It is bound to an origin, a path by whole
segments, a tenant and the key that requested it, and dies with that key. Each request is checked,
by the clock of the machine that answers, without leeway. A download that began in time is sent to
its end; a stream of events breaks off when its token ends.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qsl, unquote

from anyio.to_thread import run_sync
from fastapi import Depends, Request
from sqlalchemy import select

from fragdex.errors import Forbidden, InvalidRequest, Unauthenticated, Unavailable
from fragdex.record import record
from fragdex.service.context import ServiceContext
from fragdex.service.records import keys, tables
from fragdex.service.records.keys import KeyUses
from fragdex.service.web.prefix import public_path
from fragdex.service.web.rates import SharedRates

if TYPE_CHECKING:
    from jwt.types import Options

REMEMBER_SECONDS = 5
"""How long a key that was found is believed; so long may a revoked one still open."""

READING = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing (RFC 9110, 9.2.1)."""

MAX_REMEMBERED = 10_000


@record(frozen=True, slots=True)
class Caller:
    """The caller; `grant` is what a URL token opens, None for a key.

    Attributes:
        scope: what the key may do, one of `keys.SCOPES`; of a token: `read`.
        ends: seconds since 1970 by this machine's clock: from then on it opens nothing.
    """

    tenant_id: str
    key_id: str
    grant: Grant | None = None
    scope: str = keys.WRITE
    ends: float = math.inf


class Authenticator:
    """Tells callers from their bearers; remembers those it let in for a few seconds."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        settings = context.settings
        self._rates = SharedRates(context.database, settings.rate_limit, settings.rate_burst)
        self._known: OrderedDict[str, tuple[Caller, float]] = OrderedDict()
        self._asking: dict[str, asyncio.Future[Caller]] = {}
        self._signing: bytes | None = None
        self._uses = context.part(KeyUses)

    async def caller(self, bearer: str) -> Caller:
        """Who `bearer` is, within its rate.

        Raises:
            Unauthenticated: nobody we know, or a token whose time is over.
            TooManyRequests: over the key's rate.
        """
        caller = await self.admitted(bearer)
        await self._rates.take(caller.key_id)
        return caller

    async def admitted(self, bearer: str) -> Caller:
        """Who `bearer` is, whatever its rate; raises as `caller`."""
        known = self._known.get(bearer)
        if known is None or known[1] < time.monotonic():
            caller = await self._look_up_once(bearer)
            self._known[bearer] = caller, time.monotonic() + REMEMBER_SECONDS
            self._known.move_to_end(bearer)
            if len(self._known) > MAX_REMEMBERED:
                self._known.popitem(last=False)
        else:
            caller = known[0]
        if caller.ends <= time.time():
            raise Unauthenticated(keys.KEY_OVER if caller.grant is None else OVER)
        return caller

    def signing_secret(self) -> bytes:
        """What URL tokens are signed with; the same in every process."""
        if self._signing is None:
            self._signing = keys.secret(self._context.database, "url-tokens")
        return self._signing

    async def _look_up_once(self, bearer: str) -> Caller:
        """One look for all that ask at the same time, as many listeners of one key do."""
        asking = self._asking.get(bearer)
        if asking is None:
            asking = asyncio.ensure_future(run_sync(self._look_up, bearer))
            self._asking[bearer] = asking

            def over(done: asyncio.Future[Caller]) -> None:
                del self._asking[bearer]
                if not done.cancelled():
                    done.exception()  # whoever asked may be gone

            asking.add_done_callback(over)
        return await asyncio.shield(asking)

    def _look_up(self, bearer: str) -> Caller:
        if len(bearer) > MAX_BEARER:
            raise Unauthenticated("this is not a key")
        if bearer.count(".") == 2:
            grant = read_token(self.signing_secret(), bearer)
            ends = min(grant.ends, self._end_of(grant.key_id))
            self._uses.note(grant.key_id)
            return Caller(grant.tenant_id, grant.key_id, grant, keys.READ, ends)
        key = keys.find_key(self._context.database, bearer)
        self._uses.note(key.id)
        return Caller(key.tenant_id, key.id, None, key.scope, key.ends)

    def _end_of(self, key_id: str) -> float:
        """When a key expires, as seconds since 1970; one that was revoked signs nothing."""
        living = select(tables.keys.c.expires_at).where(
            tables.keys.c.id == key_id, tables.keys.c.revoked_at.is_(None)
        )
        row = self._context.database.first(living)
        if row is None:
            raise Unauthenticated("the key that signed this token was revoked")
        return math.inf if row.expires_at is None else row.expires_at.timestamp()


def the_context(request: Request) -> ServiceContext:
    """The context of this application; routes have it as `context: InContext`."""
    context: ServiceContext = request.app.state.context
    return context


def own_origin(request: Request) -> str:
    """Scheme, host and port under which the caller sees this service."""
    public = the_context(request).settings.public_origin
    return public or origin_of(request.url.scheme, request.url.netloc)


SCHEME = "key"
TOKEN_SCHEME = "url_token"
SECURITY_SCHEMES = {
    SCHEME: {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key (`ef_…_…`), or a URL token for GET and HEAD of its URL.",
    },
    TOKEN_SCHEME: {
        "type": "apiKey",
        "in": "query",
        "name": "token",
        "description": "A URL token, where no header can be sent (`<img>`, `<video>`).",
    },
}
"""What the OpenAPI document says of it; FastAPI's own dependency costs every request a detour."""


def bearer_of(request: Request) -> str | None:
    """What stands after `Bearer` in Authorization, if anything."""
    kind, _, bearer = request.headers.get("authorization", "").partition(" ")
    return bearer.strip() or None if kind.lower() == "bearer" else None


CALLER = "fragdex.caller"
"""Of a request's scope: the caller, once known."""


def _sent_bearer(request: Request) -> str:
    bearer = bearer_of(request)
    if bearer is None:
        bearer = request.query_params.get("token", "")
        if bearer.count(".") != 2:
            raise Unauthenticated("send `Authorization: Bearer` with a key of this service")
    return bearer


async def admission_ends(request: Request, every: float) -> None:
    """Return once the caller of a request is admitted no more; for answers that have no end.

    That is when its key or URL token ends, and within `every` seconds of its key being revoked.
    While the database does not answer, a key is believed.
    """
    known: Caller | None = request.scope.get(CALLER)
    if known is None:
        await asyncio.Event().wait()
        return
    authenticator: Authenticator = request.app.state.authenticator
    bearer = _sent_bearer(request)
    while True:
        # never earlier than it ends, and soon after, should the clock be set meanwhile
        await asyncio.sleep(min(every, max(0.01, known.ends - time.time())))
        try:
            await authenticator.admitted(bearer)
        except Unauthenticated:
            return
        except Unavailable:
            continue


async def authenticate(request: Request) -> Caller:
    """The caller of a request, found out once for each.

    Raises:
        Unauthenticated: no bearer, or an unknown one.
        Forbidden: a URL token that does not open this, or a key without the scope that it needs.
    """
    known: Caller | None = request.scope.get(CALLER)
    if known is not None:
        _need_scope(request, known)
        return known
    authenticator: Authenticator = request.app.state.authenticator
    caller = await authenticator.caller(_sent_bearer(request))
    grant = caller.grant
    if grant is not None:
        path = public_path(request["path"])
        query = request.query_params.multi_items() if grant.params else ()
        if not grant.opens(request.method, own_origin(request), path, query):
            raise Forbidden("this token opens another URL")
    _need_scope(request, caller)
    request.scope[CALLER] = caller
    return caller


def _need_scope(request: Request, caller: Caller) -> None:
    by_method = keys.READ if request.method in READING else keys.WRITE
    needed: str = getattr(request.scope.get("route"), "scope", by_method)
    if keys.SCOPES.index(caller.scope) < keys.SCOPES.index(needed):
        raise Forbidden(
            f"this key may only {caller.scope}",
            more={"scope": needed},
            advice=f"send a key that was made with the scope {needed}",
        )


async def _context_of(request: Request) -> ServiceContext:
    # FastAPI runs dependencies that are not async in threads, one visit each
    return the_context(request)


Asking = Annotated[Caller, Depends(authenticate)]
InContext = Annotated[ServiceContext, Depends(_context_of)]


ALGORITHM = "HS256"
PORTS = {"http": 80, "https": 443}
MAX_URL = 2048
MAX_BEARER = 4096
MOST_PARAMS = 20
OVER = "the time of this token is over"

_SLASH = "(?:/|%2[Ff])"
_PLAIN = r"[^/?#\x00-\x20\\"
_PORT = "[0-9]{1,4}|[1-5][0-9]{4}|6(?:[0-4][0-9]{3}|5(?:[0-4][0-9]{2}|5(?:[0-2][0-9]|3[0-5])))"
_HOST = rf"(?:{_PLAIN}@]*@)?(?:{_PLAIN}@:\[\]]+|\[[0-9A-Fa-f:.]+\])(?::(?:{_PORT})?)?"
URL = (
    rf"(?:([Hh][Tt][Tt][Pp][Ss]?)://({_HOST})|(?!//))"
    # one segment at least, and none that leads back
    rf"(?![^?#]*{_SLASH}(?:\.|%2[Ee]){{1,2}}(?:[?#]|$|{_SLASH}))"
    rf"(/{_SLASH}*(?!{_SLASH})[^?#\x00-\x20\\]+)"
    r"(?:\?([^#\x00-\x20]*))?"
)
"""The URL of a token as a pattern: absolute, or a path; scheme, host, path and query are groups."""

_URL = re.compile(URL)


@record(frozen=True, slots=True)
class Grant:
    """What a token opens."""

    tenant_id: str
    key_id: str
    origin: str
    path: tuple[str, ...]
    ends: float = math.inf
    """Seconds since 1970 by this machine's clock: from then on it opens nothing."""
    params: tuple[tuple[str, str], ...] = ()
    """What the query of each request has, once each and decoded, whatever else it has."""

    def opens(
        self, method: str, origin: str, path: str, query: Sequence[tuple[str, str]] = ()
    ) -> bool:
        """Whether a request is inside of the grant.

        >>> grant = Grant("t", "k", "http://localhost:8000", ("api", "v1", "files", "1"))
        >>> grant.opens("GET", "http://localhost:8000", "/api/v1/files/1/tracks/2")
        True
        >>> grant.opens("GET", "http://localhost:8000", "/api/v1/files/12")
        False

        Args:
            query: its parameters, decoded.
        """
        requested = segments(path)
        return (
            method in ("GET", "HEAD")
            and origin == self.origin
            and requested[: len(self.path)] == self.path
            and all(
                [value for own, value in query if own == name] == [wanted]
                for name, wanted in self.params
            )
        )


def segments(path: str) -> tuple[str, ...]:
    """A decoded path as its segments."""
    return tuple(part for part in path.split("/") if part)


def origin_of(scheme: str, netloc: str) -> str:
    """Scheme, host and port in one spelling: lower case, no port where it is the usual one."""
    scheme, netloc = scheme.lower(), netloc.lower().rpartition("@")[2]
    return f"{scheme}://{netloc.removesuffix(f':{PORTS.get(scheme)}')}"


def sign(
    secret: bytes,
    url: str,
    *,
    tenant_id: str,
    key_id: str,
    own_origin: str,
    own_path: str,
    seconds: int,
    params: Mapping[str, str] | None = None,
) -> str:
    """A token for `url`, which is absolute or a path of this service.

    Args:
        params: see `Grant`; those of the query of `url` count as well.

    Raises:
        InvalidRequest: it is no http URL, or its path is not plain; its query has a parameter
            twice, or with another value than `params`; or the token would be longer than one that
            is accepted.
    """
    parts = _URL.fullmatch(url)
    if parts is None:
        raise InvalidRequest("this is not an http URL with a plain path", pointer="/url")
    scheme, netloc, plain, query = parts.groups()
    origin = own_origin if scheme is None else origin_of(scheme, netloc)
    path = segments(unquote(plain))
    if scheme is None:
        path = _below(segments(own_path), path)
    now = int(time.time())
    claims: dict[str, Any] = {
        "iat": now,
        "exp": now + seconds,
        "sub": tenant_id,
        "key": key_id,
        "origin": origin,
        "path": "/" + "/".join(path),
    }
    if needed := _with_query(params or {}, query or ""):
        claims["params"] = needed
    import jwt  # with cryptography, 10 MB; many a service never signs

    token = jwt.encode(claims, secret, algorithm=ALGORITHM)
    if len(token) > MAX_BEARER:
        raise InvalidRequest(
            "these parameters make too long a token",
            pointer="/params",
            expected=f"a token of at most {MAX_BEARER} characters",
            found=len(token),
        )
    return token


def _with_query(params: Mapping[str, str], query: str) -> dict[str, str]:
    """The parameters of a token: what its URL's query says is meant, never ignored."""
    needed = dict(params)
    for name, value in parse_qsl(query, keep_blank_values=True):
        if needed.setdefault(name, value) != value:
            raise InvalidRequest(
                "a parameter of the query has two values", pointer="/url", found=repr(name[:80])
            )
    if len(needed) > MOST_PARAMS:
        raise InvalidRequest(
            "the query has too many parameters", pointer="/url",
            expected=f"at most {MOST_PARAMS}", found=len(needed),
        )  # fmt: skip
    return needed


def _below(prefix: tuple[str, ...], path: tuple[str, ...]) -> tuple[str, ...]:
    """A path of this service with the prefix of its public URL, which it may have already."""
    rest = path[len(prefix) :][:2]
    if path[: len(prefix)] == prefix and rest == ("api", "v1")[: len(rest)]:
        return path
    return prefix + path


def read_token(secret: bytes, token: str) -> Grant:
    """What a genuine, living token opens.

    Raises:
        Unauthenticated: it is not ours, or its time is over.
    """
    import jwt

    needed = ["exp", "sub", "key", "origin", "path"]
    # `iat` is for clients: a machine whose clock is a second ahead signs in our future
    options: Options = {"require": needed, "verify_iat": False}
    try:
        claims = jwt.decode(token, secret, algorithms=[ALGORITHM], options=options)
    except jwt.ExpiredSignatureError:
        raise Unauthenticated(OVER) from None
    except jwt.InvalidTokenError:
        raise Unauthenticated("this is not a token of this service") from None
    path = segments(claims["path"])
    params = tuple(claims.get("params", {}).items())
    return Grant(claims["sub"], claims["key"], claims["origin"], path, float(claims["exp"]), params)
