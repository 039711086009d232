"""Routes that say what they refuse, take JSON whatever its Content-Type, and replay their answers.

A family's router is `api_router("images")`; a route names the errors of its own by
`responses=answers(RecordNotFound, …)`. What every route may answer is added here, so that the
OpenAPI document tells all of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from fastapi import APIRouter, params
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Message, Scope

from fragdex.errors import FragdexError
from fragdex.service.config import Settings
from fragdex.service.errors import (
    Conflict,
    Forbidden,
    IdempotencyMismatch,
    InvalidRequest,
    RequestTimedOut,
    StoreFull,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)
from fragdex.service.web.auth import SCHEME, Doorman, bearer_of
from fragdex.service.web.bodies import body
from fragdex.service.web.idempotency import idempotency_key, replayed
from fragdex.service.web.problems import answers

__all__ = ["PREFIX", "ApiRoute", "api_router"]

PREFIX = "/api/v1"

EVERYWHERE = (Unauthenticated, Forbidden, InvalidRequest, TooManyRequests, Unavailable)
WITH_BODY = (TooLarge, RequestTimedOut, StoreFull)
CREATING = (Conflict, IdempotencyMismatch)

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def api_router(tag: str, route_class: type[ApiRoute] | None = None) -> APIRouter:
    """A router below `/api/v1` for the operations of one family."""
    return APIRouter(
        prefix=PREFIX,
        tags=[tag],
        route_class=route_class or ApiRoute,
        generate_unique_id_function=operation_id,
    )


def operation_id(route: APIRoute) -> str:
    """The function's name; HEAD often shares it with GET."""
    return f"{route.name}_head" if route.methods == {"HEAD"} else route.name


class ApiRoute(APIRoute):
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
        self.creates = any(one.dependency is idempotency_key for one in dependencies or ())
        refusals: list[type[FragdexError]] = [*EVERYWHERE]
        if set(more.get("methods") or ()) & {"POST", "PUT", "PATCH"}:
            refusals += WITH_BODY
        if self.creates:
            refusals += CREATING
        told = _merged(answers(*refusals), responses or {})
        if set(more.get("methods") or ()) == {"HEAD"}:
            # HEAD ignores Range, so it never answers what only a Range brings about
            told = {status: answer for status, answer in told.items() if status not in (206, 416)}
        super().__init__(
            path,
            endpoint,
            responses=told,
            dependencies=dependencies,
            openapi_extra={"security": [{SCHEME: []}], **(openapi_extra or {})},
            **more,
        )
        self._begin = path.partition("{")[0]

    def body_limit(self, settings: Settings) -> int:
        """Bytes that a JSON body may have."""
        return settings.max_json_bytes

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether this route answers; most do not, and the beginning of their path tells."""
        if not scope["path"].startswith(self._begin):
            return Match.NONE, {}
        return super().matches(scope)

    def get_route_handler(self) -> Handler:
        """The handler of a request; a JSON body is read before, within its limit."""
        handler = super().get_route_handler()
        if self.body_field is None and not self.creates:
            return handler

        async def guarded(request: Request) -> Response:
            read = await body(request, self.body_limit(request.app.state.house.settings))
            _need_whole_characters(read)
            again = _with_json(request, read)
            if self.creates and "idempotency-key" in request.headers:
                caller = await _tenant(request)
                if caller is not None:
                    return await replayed(again, caller, read, readable)
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


def _need_whole_characters(read: bytes) -> None:
    r"""Refuse `"\ud800"` and its like: no database and no answer could hold it."""
    if not _SURROGATE.search(read):
        return
    try:
        json.dumps(json.loads(read), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InvalidRequest("half of a surrogate pair is no character (RFC 8259, 8.2)") from None
    except (ValueError, RecursionError):
        return  # the parser of the route says it better


async def _tenant(request: Request) -> str | None:
    """The tenant of a key; None where the handler itself will refuse the caller."""
    bearer = bearer_of(request)
    if bearer is None:
        return None
    doorman: Doorman = request.app.state.doorman
    caller = await doorman.caller(bearer, count=False)
    return None if caller.grant is not None else caller.tenant_id


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
    return merged
