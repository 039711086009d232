"""Requests and responses as values; procedures as generators that do no IO themselves.

A generator yields what is to be done (`Send`, `Fetch`, `Sleep`, `Await`) and is sent what came of
it. `Client` runs it with blocking calls, `AsyncClient` with awaited ones: each procedure is written
once.
"""

from __future__ import annotations

import dataclasses
import json
import random
import uuid
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from dataclasses import field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import wraps
from inspect import signature
from typing import Any, Final, Generic, ParamSpec, TypeAlias, TypeVar
from urllib.parse import quote

import msgspec

from fragdex.byterange import ByteRange
from fragdex.client.errors import RequestRefused, ServiceUnreachable, UnexpectedResponse, refusal
from fragdex.record import record

T_co = TypeVar("T_co", covariant=True)

JSON: Final = "application/json"


def segment(value: object) -> str:
    """A value as one segment of a path."""
    return quote(str(value), safe="")


@record(frozen=True, slots=True)
class Request(Generic[T_co]):
    """A request to the service.

    Attributes:
        method: of HTTP.
        path: absolute, as the OpenAPI document writes it.
        query, headers, body: by their names; what is None is left out. The body is sent as JSON.
        content: bytes that are sent as they are; None: none.
        result: the type of the record in the response; `bytes`, or None for no content. A response
            without content is None.
        binary: whether the response may be bytes where its type is not JSON.
    """

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    content: bytes | None = None
    result: Any = None
    binary: bool = False

    @property
    def safe_to_repeat(self) -> bool:
        """Whether sending it twice does no more than once (RFC 9110, 9.2.2).

        A POST is, where it has an Idempotency-Key or sends bytes of an upload that had begun.
        """
        return (
            self.method != "POST"
            or (self.content is not None and "Upload-Complete" not in self.headers)
            or self.headers.get("Idempotency-Key") is not None
        )

    def parameters(self) -> dict[str, str]:
        """The query as text."""
        return {name: _text(value) for name, value in self.query.items() if value is not None}

    def fields(self) -> dict[str, str]:
        """The headers as text; what is accepted among them."""
        fields = {name: _text(value) for name, value in self.headers.items() if value is not None}
        if self.body is not None:
            fields["Content-Type"] = JSON
        elif self.content is not None:
            fields.setdefault("Content-Type", "application/octet-stream")
        if self.result is not bytes and not self.binary:
            fields.setdefault("Accept", JSON)
        return fields

    def payload(self) -> bytes | None:
        """The body as bytes; None without one."""
        if self.body is None:
            return self.content
        return msgspec.json.encode({k: v for k, v in self.body.items() if v is not None})

    def read(self, media_type: str, content: bytes) -> T_co:
        """The result that a response of success becomes.

        Raises:
            msgspec.ValidationError: it is not what the document says.
        """
        if self.result is None or (not content and self.result is not bytes):
            return None  # type: ignore[return-value]
        if self.result is bytes or (self.binary and media_type != JSON):
            return content  # type: ignore[return-value]
        return msgspec.json.decode(content, type=self.result)  # type: ignore[no-any-return]


P = ParamSpec("P")

HEADERS: Final = {
    "content_range": "Content-Range",
    "idempotency_key": "Idempotency-Key",
    "last_event_id": "Last-Event-ID",
    "range": "Range",
    "upload_complete": "Upload-Complete",
    "upload_length": "Upload-Length",
    "upload_offset": "Upload-Offset",
}
"""Parameters that are headers, in every operation."""


def operation(
    method: str,
    path: str,
    result: Any = None,
    *,
    binary: bool = False,
    content_type: str | None = None,
    written: Mapping[str, str] | None = None,
) -> Callable[[Callable[P, Request[T_co]]], Callable[P, Request[T_co]]]:
    """Lets a signature make the request of an operation; the function itself has no code.

    Parameters that `path` names go there, those of `HEADERS` there, `content` is sent as it is. All
    others are the query of a GET, HEAD or DELETE, and the body of any other method.

    Args:
        method, path, result, binary: of the `Request`; `path` has `{parameter}`.
        content_type: of `content`; None: bytes of any kind.
        written: parameters that HTTP writes in another way than Python.
    """

    def of_signature(function: Callable[P, Request[T_co]]) -> Callable[P, Request[T_co]]:
        called = signature(function)

        @wraps(function)
        def request(*values: P.args, **named: P.kwargs) -> Request[T_co]:
            bound = called.bind(*values, **named)
            bound.apply_defaults()
            segments: dict[str, str] = {}
            headers: dict[str, Any] = {} if content_type is None else {"Content-Type": content_type}
            members: dict[str, Any] = {}
            content = bound.arguments.pop("content", None)
            for name, value in bound.arguments.items():
                if f"{{{name}}}" in path:
                    segments[name] = segment(value)
                elif name in HEADERS:
                    headers[HEADERS[name]] = value
                else:
                    members[(written or {}).get(name, name)] = value
            in_query = method in ("GET", "HEAD", "DELETE")
            return Request(
                method,
                path.format(**segments),
                query=members if in_query else {},
                headers=headers,
                body=None if in_query else members or None,
                content=content,
                result=result,
                binary=binary,
            )

        return request

    return of_signature


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, ByteRange):
        return value.header
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)


T = TypeVar("T")

PASSING: Final = frozenset({408, 425, 429, 502, 503, 504})
"""Statuses after which the same request may succeed, and that say that nothing was done."""


class ConnectionLost(Exception):
    """The connection broke, or could not be made; what runs a procedure throws this into it."""


@record(frozen=True, slots=True)
class Response:
    """What the service answered: `headers` by lower-case names."""

    status: int
    headers: Mapping[str, str]
    content: bytes = b""


@record(frozen=True, slots=True)
class Send:
    """Send a request, be given its `Response`."""

    request: Request[Any]


@record(frozen=True, slots=True)
class Put:
    """Put bytes to a URL of another server, without the key; be given its `Response`."""

    url: str
    content: bytes


@record(frozen=True, slots=True)
class Fetch:
    """Send a request and write its content as it comes, be given its `Response` without it.

    `write` is given the response, before its first bytes and then with each piece.
    """

    request: Request[Any]
    headers: Mapping[str, str]
    write: Callable[[Response, bytes], None]


@record(frozen=True, slots=True)
class Sleep:
    """Continue after so many seconds."""

    seconds: float


@record(frozen=True, slots=True)
class Await:
    """Be given what another thread made."""

    future: Future[Any]


Step: TypeAlias = Send | Put | Fetch | Sleep | Await
Procedure: TypeAlias = Generator[Step, Any, T]


@record(frozen=True, slots=True)
class Retries:
    """How often, and after what time, something is tried again.

    Attributes:
        most: tries after the first one, without any progress in between.
        first: seconds before the second try, doubled for each later one.
        longest: seconds between two tries at most; also the most that `Retry-After` may ask for.
    """

    most: int = 6
    first: float = 0.25
    longest: float = 30.0

    def wait(self, tried: int, retry_after: float | None = None) -> float:
        """Seconds before the next try, with jitter, so that clients do not come all at once."""
        most = min(self.first * 2**tried, self.longest)
        return max(min(retry_after or 0, self.longest), random.uniform(most / 2, most))


def problem_of(response: Response) -> RequestRefused:
    """The error that a response is."""
    try:
        problem = json.loads(response.content)
    except ValueError:
        problem = {}
    if not isinstance(problem, dict):
        problem = {}
    return refusal(response.status, problem, retry_after=_retry_after(response))


def _retry_after(response: Response) -> float | None:
    text = response.headers.get("retry-after", "")
    try:
        return max(float(text), 0)
    except ValueError:
        pass
    try:
        left = parsedate_to_datetime(text) - datetime.now(UTC)
    except (ValueError, TypeError):
        return None
    return max(left.total_seconds(), 0)


def with_idempotency_key(request: Request[T]) -> Request[T]:
    """The request with an Idempotency-Key of its own, where it takes one and has none."""
    if request.headers.get("Idempotency-Key", "") is not None:
        return request
    key = {"Idempotency-Key": str(uuid.uuid4())}
    return dataclasses.replace(request, headers={**request.headers, **key})


def exchange(request: Request[T], retries: Retries) -> Procedure[T]:
    """Send a request, again where that is safe and may help; gives its result.

    Raises:
        RequestRefused: the service refuses it.
        ServiceUnreachable: no response.
        UnexpectedResponse: one that is not what the document says.
    """
    request = with_idempotency_key(request)
    tried = 0
    while True:
        try:
            response: Response = yield Send(request)
        except ConnectionLost as error:
            if not request.safe_to_repeat or tried == retries.most:
                raise ServiceUnreachable(f"no response: {error}") from error
            yield Sleep(retries.wait(tried))
        else:
            if response.status < 400:
                return result_of(request, response)
            refused = problem_of(response)
            if response.status not in PASSING or tried == retries.most:
                raise refused
            if not request.safe_to_repeat and response.status in (502, 504):
                raise refused  # a proxy does not know whether it was done
            yield Sleep(retries.wait(tried, refused.retry_after))
        tried += 1


def result_of(request: Request[T], response: Response) -> T:
    """What a response of success is.

    Raises:
        UnexpectedResponse: it is not what the document says.
    """
    media_type = response.headers.get("content-type", "").partition(";")[0].strip()
    if not 200 <= response.status < 300:
        raise UnexpectedResponse(
            f"{request.method} {request.path} was answered with {response.status}",
            advice="is this the URL of a fragdex service?",
        )
    try:
        return request.read(media_type, response.content)
    except msgspec.MsgspecError as error:
        raise UnexpectedResponse(
            f"{request.method} {request.path} was answered with something else: {error}",
            advice="is this a fragdex service, of this version?",
        ) from error
