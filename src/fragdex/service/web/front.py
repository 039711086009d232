"""What a request passes before its route: named, counted, traced, errors answered, made safe.

And which pages may call the service from a browser (WHATWG Fetch, 3.2). One layer does all of it:
each of the framework's own costs every request a call, and a closure around what is sent.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, ExceptionHandler, Message, Receive, Scope, Send

from fragdex.errors import FragdexError
from fragdex.service.config import Settings
from fragdex.service.logs import REQUEST_ID, explained, request_id_of
from fragdex.service.metrics import Metrics
from fragdex.service.web.auth import CALLER, Caller
from fragdex.service.web.events import BrokenOff
from fragdex.service.web.prefix import public_path
from fragdex.service.web.problems import HTTP, problem, unexpected
from fragdex.traces import ActiveSpan, Traces

log = logging.getLogger("fragdex.service")
access = logging.getLogger("fragdex.access")

SAFETY = (
    # a file's type is what we say it is, whatever its bytes look like
    (b"x-content-type-options", b"nosniff"),
    # URLs may carry tokens
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    # media may be shown by pages of other origins; CORS decides who reads them
    (b"cross-origin-resource-policy", b"cross-origin"),
)
JSON = frozenset({b"application/json", b"application/problem+json"})
UNTRACED = frozenset({"/healthz", "/readyz", "/metrics"})
"""Asked every few seconds, by machines."""
MAX_TRACESTATE = 512
"""Characters of it that have to be kept (W3C Trace Context, 3.3.1.5); it goes into each job."""
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Front:
    """The layer around all routes.

    Args:
        refusals: what answers an exception of a class that routes raise on purpose.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        metrics: Metrics,
        traces: Traces,
        refusals: Mapping[Any, ExceptionHandler],
    ) -> None:
        self._app, self._metrics, self._traces = app, metrics, traces
        self._access_log = settings.access_log
        self._cors = _cors_of(settings)
        self._refusals = refusals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; other kinds of connection go through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if self._cors is not None and _is_preflight(scope, headers):
            await self._cors.preflight_response(headers)(scope, receive, send)
            return
        request_id = request_id_of(next(iter(_fields(scope, b"x-request-id")), None))
        sent = _Sent(send, request_id, self._cors, headers)
        REQUEST_ID.set(request_id)
        if b"%2f" in (scope.get("raw_path") or b"").lower():
            # decoded, it would be a path of other segments: that of another route
            await problem(HTTP[404], HTTP[404].title)(scope, receive, sent)
            return
        if not self._traces.are_on or scope["path"] in UNTRACED:
            await self._answer(scope, receive, sent)
            return
        # its name is that of the route, once that is known: paths and queries may hold tokens
        with self._traces.span(
            _span_name(scope), kind="server", parent=_trace_context(scope),
            attributes={"http.request.method": _method(scope), "url.scheme": scope["scheme"]},
        ) as span:  # fmt: skip
            try:
                await self._answer(scope, receive, sent)
            finally:
                if span is not None:
                    _describe(span, scope, sent, request_id)

    async def _answer(self, scope: Scope, receive: Receive, sent: _Sent) -> None:
        began = time.perf_counter()
        self._metrics.requests_running.inc()
        try:
            await self._app(scope, receive, sent)
        except BrokenOff:
            pass  # the server closes a connection whose answer is not complete
        except Exception as error:
            if sent.status:
                if not isinstance(error, FragdexError):
                    raise
                # the store or the database went away
                log.warning("an answer broke off: %s", explained(error))
                return  # as above
            await (await self._refusal(scope, receive, error))(scope, receive, sent)
        finally:
            self._metrics.requests_running.dec()
            method = scope["method"] if scope["method"] in METHODS else "(other)"
            seconds = time.perf_counter() - began
            self._metrics.count_request(method, _route(scope) or "(none)", sent.status, seconds)
            if self._access_log:
                _log_request(scope, sent.status, sent.size, seconds)

    async def _refusal(self, scope: Scope, receive: Receive, error: Exception) -> ASGIApp:
        """The answer to what a route raised; a fault of ours is written down."""
        for kind in type(error).__mro__:
            if (refuse := self._refusals.get(kind)) is not None:
                answer: ASGIApp = await refuse(Request(scope, receive), error)  # type: ignore[misc, arg-type]
                return answer
        return unexpected(error)


class _Sent:
    """Sends an answer, made safe; knows what of it was sent."""

    def __init__(
        self, send: Send, request_id: str, cors: CORSMiddleware | None, requested: Headers
    ) -> None:
        self._send, self._named = send, (b"x-request-id", request_id.encode())
        self._cors, self._requested = cors, requested
        self._one_line = False
        self.status = self.size = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = message["headers"]
            longer = _with_newline(headers)
            self._one_line = longer is not None
            message["headers"] = [*map(_public, longer or headers), *SAFETY, self._named]
            if self._cors is not None:
                await self._cors.send(message, self._send, self._requested)
                return
        elif self._one_line and not message.get("more_body"):
            message["body"] = message.get("body", b"") + b"\n"
        self.size += len(message.get("body", b"")) + message.get("count", 0)  # of a file
        await self._send(message)


def _route(scope: Scope) -> str | None:
    return getattr(scope.get("route"), "path_format", None)


def _method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in METHODS else "_OTHER"


def _span_name(scope: Scope) -> str:
    """As of OpenTelemetry's conventions for HTTP spans."""
    method, route = _method(scope), _route(scope)
    name = "HTTP" if method == "_OTHER" else method
    return f"{name} {route}" if route else name


def _fields(scope: Scope, name: bytes) -> list[str]:
    return [bytes(value).decode("latin-1") for key, value in scope["headers"] if key == name]


def _trace_context(scope: Scope) -> dict[str, str]:
    """What a client sent of its trace (W3C Trace Context, 3.2 and 3.3); of two it means none."""
    parents, states = _fields(scope, b"traceparent"), ",".join(_fields(scope, b"tracestate"))
    if len(parents) != 1:
        return {}
    state = {"tracestate": states} if 0 < len(states) <= MAX_TRACESTATE else {}
    return {"traceparent": parents[0], **state}


def _describe(span: ActiveSpan, scope: Scope, sent: _Sent, request_id: str) -> None:
    route, caller = _route(scope), scope.get(CALLER)
    span.describe(
        _span_name(scope),
        http__route=route,
        http__response__status_code=sent.status or None,
        http__response__body__size=sent.size,
        fragdex__request_id=request_id,
        fragdex__tenant=caller.tenant_id if caller else None,
    )
    if sent.status >= 500:
        span.failed(str(sent.status))


def _log_request(scope: Scope, status: int, size: int, seconds: float) -> None:
    caller: Caller | None = scope.get(CALLER)
    # as sent, so that no byte of it can end the line
    target = (scope.get("raw_path") or b"").decode("latin-1")
    if scope["query_string"]:
        target += "?" + scope["query_string"].decode("latin-1")
    fields = {
        "client": (scope.get("client") or ("",))[0],
        "tenant": caller.tenant_id if caller else None,
        "method": scope["method"],
        "target": target,
        "status": status,
        "bytes": size,
        "seconds": round(seconds, 6),
    }
    access.info(
        "%s %s %s %d %d bytes %.4f s", fields["client"], scope["method"], target, status, size,
        seconds, extra={"fields": fields},
    )  # fmt: skip


def _public(field: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """A field as the client has to see it: a place of the service is below its public path."""
    name, value = field
    if name == b"location" and value.startswith(b"/"):
        return name, public_path(value.decode()).encode()
    return field


def _with_newline(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]] | None:
    """Headers of JSON that ends its line, so that a shell's prompt does not stand after it.

    None: it is not JSON, or an object whose bytes an ETag identifies.
    """
    fields = dict(headers)
    if fields.get(b"content-type", b"").partition(b";")[0] not in JSON or b"etag" in fields:
        return None
    length = fields.get(b"content-length", b"0")
    if length == b"0":
        return None
    longer = b"%d" % (int(length) + 1)
    return [(name, longer if name == b"content-length" else text) for name, text in headers]


ALLOWED_FIELDS = (
    "Accept",
    "Authorization",
    "Cache-Control",
    "Content-Digest",
    "Content-Disposition",
    "Content-Range",
    "Content-Type",
    "Idempotency-Key",
    "If-None-Match",
    "If-Range",
    "Last-Event-ID",
    "Range",
    # of resumable uploads, tus among them
    "Repr-Digest",
    "Tus-Resumable",
    "Upload-Checksum",
    "Upload-Complete",
    "Upload-Concat",
    "Upload-Defer-Length",
    "Upload-Draft-Interop-Version",
    "Upload-Length",
    "Upload-Metadata",
    "Upload-Offset",
    "X-HTTP-Method-Override",
    "X-Request-ID",
)
EXPOSED_FIELDS = (
    "Accept-Patch",
    "Accept-Ranges",
    "Content-Length",
    "Content-Range",
    "ETag",
    "Idempotency-Replayed",
    "Location",
    "Repr-Digest",
    "Retry-After",
    "Tus-Checksum-Algorithm",
    "Tus-Extension",
    "Tus-Max-Size",
    "Tus-Resumable",
    "Tus-Version",
    "Upload-Complete",
    "Upload-Concat",
    "Upload-Expires",
    "Upload-Length",
    "Upload-Limit",
    "Upload-Metadata",
    "Upload-Offset",
    "X-Findings",
    "X-Request-ID",
)
DAY = 86_400


def _cors_of(settings: Settings) -> CORSMiddleware | None:
    """Answers preflight requests, and lets answers be read by pages of the set origins.

    Never with credentials: a key is sent by the page that holds it, not by the browser itself.
    """
    if not settings.cors_origins:
        return None
    return CORSMiddleware(
        Response(),  # it is no layer of its own
        allow_origins=list(settings.cors_origins),
        allow_methods=METHODS,
        allow_headers=ALLOWED_FIELDS,
        expose_headers=EXPOSED_FIELDS,
        max_age=DAY,
    )


def _is_preflight(scope: Scope, headers: Headers) -> bool:
    return (
        scope["method"] == "OPTIONS"
        and "origin" in headers
        and "access-control-request-method" in headers
    )
