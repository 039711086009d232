"""Routes that say what they refuse, take JSON whatever its Content-Type, and replay their answers.

A family's router is `api_router("images")`; a route names the errors of its own by
`responses=answers(RecordNotFound, …)`. What every route may answer is added here, so that the
OpenAPI document tells all of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from decimal import Decimal
from functools import cached_property
from typing import Any, Final, Literal, TypeVar
from urllib.parse import urlencode

from fastapi import APIRouter, params
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, compile_path, get_name
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fragdex.errors import (
    Forbidden,
    FragdexError,
    IdempotencyMismatch,
    InvalidRequest,
    RequestRunning,
    RequestTimedOut,
    StoreFull,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)
from fragdex.service.config import Settings
from fragdex.service.context import ServiceContext
from fragdex.service.records.keys import READ, WRITE
from fragdex.service.web.auth import READING, SCHEME, TOKEN_SCHEME, authenticate
from fragdex.service.web.bodies import body
from fragdex.service.web.fields import VALIDATORS
from fragdex.service.web.idempotency import ShownOnce, idempotency_key, replayed
from fragdex.service.web.problems import answers

PREFIX = "/api/v1"

EVERYWHERE = (Unauthenticated, Forbidden, InvalidRequest, TooManyRequests, Unavailable)
WITH_BODY = (TooLarge, RequestTimedOut, StoreFull)
CREATING = (RequestRunning, IdempotencyMismatch)

TOKEN = "token"
FROM_PLAYERS = ("CMCD",)
"""Parameters that players add to every URL they ask for: Common Media Client Data (CTA-5004)."""

MAX_SHOWN = 80
"""Characters of a name that an answer repeats."""

RANGE: dict[str, Any] = {
    "name": "Range",
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": "`bytes=START-END`, END inclusive; one that cannot be read is ignored",
    "example": "bytes=0-1023",
}

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
FastPath = Callable[[Request, ServiceContext, str], Response]
"""Answers a request of a tenant as its route does, from a context that is `nonblocking`."""
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


def api_router(tag: str, route_class: type[ApiRoute] | None = None) -> APIRouter:
    """A router below `/api/v1` for the operations of one family."""
    return APIRouter(
        prefix=PREFIX,
        tags=[tag],
        route_class=route_class or ApiRoute,
        generate_unique_id_function=operation_id,
    )


def get_and_head(
    router: APIRouter, path: str, **declaration: Any
) -> Callable[[Endpoint], Endpoint]:
    """Declare a route that answers GET, with HEAD as an operation of its own in the document.

    Args:
        declaration: as of `APIRouter.get`; the endpoint gives a Response.
    """

    def declared(endpoint: Endpoint) -> Endpoint:
        for method in (router.head, router.get):
            method(path, response_class=Response, **declaration)(endpoint)
        return endpoint

    return declared


def needs_scope(scope: str) -> Callable[[Endpoint], Endpoint]:
    """Have a route need another scope than its method says, one of `keys.SCOPES`."""

    def marked(endpoint: Endpoint) -> Endpoint:
        endpoint.scope = scope  # type: ignore[attr-defined]
        return endpoint

    return marked


def with_secret(secret: ShownOnce) -> Callable[[Endpoint], Endpoint]:
    """Keep a part of what a route answers out of the answer kept under an Idempotency-Key."""

    def marked(endpoint: Endpoint) -> Endpoint:
        endpoint.secret = secret  # type: ignore[attr-defined]
        return endpoint

    return marked


def _in_ms(seconds: str) -> str:
    """Milliseconds of seconds, exactly; what is not a number stays as it is."""
    try:
        return str(Decimal(seconds).scaleb(3).normalize())
    except (ArithmeticError, ValueError):
        return seconds


OTHER_NAMES: Final[Mapping[str, tuple[str, Callable[[str], str]]]] = {
    "start": ("start_ms", _in_ms),
    "end": ("end_ms", _in_ms),
    "t": ("time_ms", _in_ms),
    "every": ("every_ms", _in_ms),
}
"""Parameters of a query by earlier names: the name that the document has, and the value under it.

They are taken where a route has the parameter, and has none of the earlier name.
"""


_NO_QUERY = re.compile(b"")


def with_fast_path(
    answer: FastPath, query: re.Pattern[bytes] = _NO_QUERY
) -> Callable[[Endpoint], Endpoint]:
    """Have GET answered in the event loop, where what it needs is at hand.

    A thread and the framework's reading of parameters cost more than many a look-up. Where `answer`
    raises BlockingIOError, or the query is not one of `query`, the endpoint answers.
    """

    def marked(endpoint: Endpoint) -> Endpoint:
        endpoint.fast_path = answer, query  # type: ignore[attr-defined]
        return endpoint

    return marked


def operation_id(route: APIRoute) -> str:
    """The function's name; HEAD often shares it with GET, and then begins with `head`."""
    if route.methods == {"HEAD"}:
        return f"head_{route.name.partition('_')[2]}"
    return route.name


class DeferredRoute(APIRoute):
    """A route whose endpoint is analysed when a request or the document first needs it.

    FastAPI reads signatures and makes validators where a route is declared: for all routes of the
    service that is a third of its start, and a process answers few of them.
    """

    methods: set[str]

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        methods: Collection[str] | None = None,
        name: str | None = None,
        include_in_schema: bool = True,
        **more: Any,
    ) -> None:
        self.path, self.endpoint = path, endpoint
        self.methods = {method.upper() for method in methods or ("GET",)}
        self.name = get_name(endpoint) if name is None else name
        self.include_in_schema = include_in_schema
        self._more = more
        self._state: Literal["declared", "analysing", "analysed"] = "declared"

    def __getattr__(self, name: str) -> Any:
        """An attribute that is not there yet: of the path, or of the endpoint."""
        if name in _OF_PATHS:
            self.path_regex, self.path_format, self.param_convertors = compile_path(self.path)
            return self.__dict__[name]
        if not name.startswith("__"):
            self.analyse()
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no attribute {name}") from None

    def analyse(self) -> None:
        """Read the endpoint's signature, once, whichever thread is the first.

        Raises:
            FastAPIError: what the endpoint takes or returns is nothing that FastAPI knows.
        """
        if self._state == "analysed":
            return
        with VALIDATORS:
            if self._state == "declared":
                self._state = "analysing"
                handlers: list[Handler] = []
                made = self.get_route_handler

                def noted() -> Handler:
                    handlers.append(made())
                    return handlers[-1]

                self.get_route_handler = noted  # type: ignore[method-assign]
                try:
                    super().__init__(
                        self.path,
                        self.endpoint,
                        methods=self.methods,
                        name=self.name,
                        include_in_schema=self.include_in_schema,
                        **self._declaration(),
                    )
                    self._answer = _answered_by(handlers[0])
                except BaseException:
                    self._state = "declared"
                    raise
                finally:
                    del self.get_route_handler
                self._state = "analysed"

    @property
    def app(self) -> ASGIApp:
        """What answers a request."""
        return self._answer

    @app.setter
    def app(self, app: ASGIApp) -> None:
        """FastAPI's own is not used: no thread may ever see it."""

    def _declaration(self) -> dict[str, Any]:
        """Arguments of FastAPI for the route, besides path, endpoint, methods and name."""
        return self._more


def _answered_by(handler: Handler) -> ASGIApp:
    """The application of a route; what it raises is answered by `Front`.

    In place of the framework's own, which catches it once more, and opens a stack each for what
    dependencies leave to be closed: ours leave nothing.
    """

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        async with AsyncExitStack() as stack:
            for name in _STACKS:
                scope[name] = stack
            response = await handler(Request(scope, receive, send))
            await response(scope, receive, send)

    return app


_STACKS = ("fastapi_middleware_astack", "fastapi_inner_astack", "fastapi_function_astack")

_OF_PATHS = frozenset({"path_regex", "path_format", "param_convertors"})


_BELOW = f"{PREFIX}/"


class RouteTable(BaseRoute):
    """Finds the route of a path below `PREFIX` without a look at every one.

    It stands before them, and knows them by their collection and how many segments they have. What
    it does not find (another path, another method) is left to the routes themselves.
    """

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self._routes: dict[tuple[str, int], list[BaseRoute]] = {}
        for route in routes:
            path: str = getattr(route, "path", "")
            if path.startswith(_BELOW):
                self._routes.setdefault(_place_of(path), []).append(route)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """The first route that answers, in `child_scope`."""
        path = scope.get("path", "")
        if path.startswith(_BELOW):
            for route in self._routes.get(_place_of(path), ()):
                match, child_scope = route.matches(scope)
                if match is Match.FULL:
                    return match, child_scope
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer by the route that was found."""
        await scope["route"].handle(scope, receive, send)


def _place_of(path: str) -> tuple[str, int]:
    """The collection of a path below `PREFIX`, and how many slashes it has."""
    return path[len(_BELOW) :].partition("/")[0], path.count("/")


class HeadRoute(DeferredRoute):
    """A route that answers HEAD wherever it answers GET (RFC 9110, 9.3.2).

    The server leaves the body away. The document names HEAD only where a route of its own does.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **more: Any) -> None:
        super().__init__(path, endpoint, **more)
        self._begin, self._slashes = path.partition("{")[0], path.count("/")

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether this route answers; most do not, and the look of their path tells."""
        path = scope["path"]
        if path.count("/") != self._slashes or not path.startswith(self._begin):
            return Match.NONE, {}
        match, child_scope = super().matches(scope)
        if match is Match.PARTIAL and self._is_head_of_get(scope):
            match = Match.FULL
        return match, child_scope

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        if self._is_head_of_get(scope):
            await self.app(scope, receive, send)
        else:
            await super().handle(scope, receive, send)

    def _is_head_of_get(self, scope: Scope) -> bool:
        return bool(scope["method"] == "HEAD" and self.methods and "GET" in self.methods)


class ApiRoute(HeadRoute):
    """A route that documents and guards what all have in common."""

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        responses: dict[int | str, dict[str, Any]] | None = None,
        dependencies: Sequence[params.Depends] | None = None,
        openapi_extra: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(path, endpoint, **more)
        self.creates = any(one.dependency is idempotency_key for one in dependencies or ())
        by_method = READ if self.methods <= READING else WRITE
        self.scope: str = getattr(endpoint, "scope", by_method)
        self.fast_path: tuple[FastPath, re.Pattern[bytes]] | None = getattr(
            endpoint, "fast_path", None
        )
        # what of its answers is shown once, and not kept under an Idempotency-Key
        self._secret: ShownOnce | None = getattr(endpoint, "secret", None)
        self._refusals, self._dependencies, self._extra = responses, dependencies, openapi_extra
        self._undocumented = frozenset({TOKEN, *FROM_PLAYERS} if self._reads() else ())

    def _reads(self) -> bool:
        return self.methods <= {"GET", "HEAD"}

    def _declaration(self) -> dict[str, Any]:
        """With the answers that all routes have in common, and who may ask."""
        refusals: list[type[FragdexError]] = [*EVERYWHERE]
        if self.methods & {"POST", "PUT", "PATCH"}:
            refusals += WITH_BODY
        if self.creates:
            refusals += CREATING
        responses = _merged(answers(*refusals), self._refusals or {})
        if self.methods == {"HEAD"}:
            # HEAD ignores Range, so it never answers what only a Range brings about
            responses = {
                status: answer for status, answer in responses.items() if status not in (206, 416)
            }
        extra: dict[str, Any] = dict(self._extra or {})
        # OpenAPI 3.1 has names of roles there
        security: list[dict[str, list[str]]] = [{SCHEME: [self.scope]}]
        if self._reads() and self.scope == READ:
            security.append({TOKEN_SCHEME: []})
        if 206 in responses:
            extra["parameters"] = [*extra.get("parameters", ()), RANGE]
        return {
            **super()._declaration(),
            "responses": responses,
            "dependencies": self._dependencies,
            "openapi_extra": {"security": security, **extra},
        }

    @cached_property
    def _parameters(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(_query_names(self.dependant)))

    def body_limit(self, settings: Settings) -> int:
        """Bytes that a JSON body may have."""
        return settings.max_json_bytes

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, by the fast path if there is one; the caller is looked at first either way."""
        if self.fast_path is not None and scope["method"] == "GET":
            answer, query = self.fast_path
            if query.fullmatch(scope["query_string"]):
                request = Request(scope, receive)
                caller = await authenticate(request)
                # what breaks a rule is refused where all parameters are known
                with suppress(BlockingIOError, InvalidRequest):
                    response = answer(request, request.app.state.nonblocking, caller.tenant_id)
                    await response(scope, receive, send)
                    return
        await super().handle(scope, receive, send)

    def get_route_handler(self) -> Handler:
        """The handler of a request: the key is looked at, then a JSON body is read in its limit."""
        handler = super().get_route_handler()
        if self.body_field is None and not self.creates:

            async def without_body(request: Request) -> Response:
                if request.scope["query_string"]:
                    await authenticate(request)
                    request = self._with_known_parameters(request)
                return await handler(request)

            return without_body

        async def guarded(request: Request) -> Response:
            caller = await authenticate(request)
            request = self._with_known_parameters(request)
            read = await body(request, self.body_limit(request.app.state.context.settings))
            _need_whole_characters(read)
            again = _with_json(request, read)
            if self.creates and "idempotency-key" in request.headers:
                return await replayed(again, caller.tenant_id, read, readable, self._secret)
            return await readable(again)

        async def readable(request: Request) -> Response:
            try:
                return await handler(request)
            except HTTPException as error:
                # FastAPI's word for bytes that are no UTF-8, or nest too deep for its parser
                if error.status_code != 400:
                    raise
                raise InvalidRequest("the body cannot be read as JSON (RFC 8259)") from error

        return guarded

    def _with_known_parameters(self, request: Request) -> Request:
        """The request with its parameters by the names of the document.

        What would be skipped is refused: a misspelt `limt` changes nothing, and nobody knows.
        """
        query, renamed = [], False
        for name, value in request.query_params.multi_items():
            new, in_its_unit = OTHER_NAMES.get(name, (name, str))
            if name not in self._parameters and new in self._parameters:
                if new in request.query_params:
                    raise InvalidRequest(
                        f"{name} and {new} are the same parameter", pointer=new,
                        expected=f"{new} alone",
                    )  # fmt: skip
                query.append((new, in_its_unit(value)))
                renamed = True
                continue
            query.append((name, value))
            if name not in self._parameters and name not in self._undocumented:
                known = ", ".join(self._parameters)
                raise InvalidRequest(
                    "there is no such parameter",
                    # a pointer into a body begins with a slash
                    pointer=name[:MAX_SHOWN].lstrip("/") or None,
                    expected=f"one of {known}" if known else "none",
                    found=repr(name[:MAX_SHOWN]),
                )
        if not renamed:
            return request
        scope = {**request.scope, "query_string": urlencode(query).encode()}
        return Request(scope, request.receive)


def _query_names(dependant: Dependant) -> Iterator[str]:
    yield from (field.alias for field in dependant.query_params)
    for other in dependant.dependencies:
        yield from _query_names(other)


def _need_whole_characters(read: bytes) -> None:
    r"""Refuse `"\ud800"` and its like: no database and no answer could hold it."""
    if not _SURROGATE.search(read):
        return
    try:
        json.dumps(json.loads(read), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InvalidRequest(
            "half of a surrogate pair is not a character (RFC 8259, 8.2)"
        ) from None
    except (ValueError, RecursionError):
        return  # the parser of the route says it better


def _with_json(request: Request, read: bytes) -> Request:
    """The same request with a body that was read, called JSON whatever it was called before."""
    headers = [pair for pair in request.scope["headers"] if pair[0] != b"content-type"]
    request.scope["headers"] = [*headers, (b"content-type", b"application/json")]

    async def receive() -> Message:
        return {"type": "http.request", "body": read, "more_body": False}

    return Request(request.scope, receive)


def _merged(
    first: dict[int | str, dict[str, Any]], second: dict[int | str, dict[str, Any]]
) -> dict[int | str, dict[str, Any]]:
    """Answers of both; where both know a status, its descriptions follow one another."""
    merged = {status: dict(answer) for status, answer in second.items()}
    for status, answer in first.items():
        known = merged.setdefault(status, dict(answer))
        if answer["description"] not in known["description"]:
            known["description"] = f"{known['description']}; {answer['description']}"
        if "headers" in answer:
            known["headers"] = {**answer["headers"], **known.get("headers", {})}
    return merged
