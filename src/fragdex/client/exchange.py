"""Requests, retries, uploads and downloads as generators that do no IO themselves.

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
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from fragdex.client.errors import (
    RequestRefused,
    ServiceUnreachable,
    UnexpectedResponse,
    refusal,
)
from fragdex.client.request import Request

__all__ = [
    "Await",
    "ConnectionLost",
    "Fetch",
    "Procedure",
    "Put",
    "Response",
    "Retries",
    "Send",
    "Sleep",
    "Step",
    "exchange",
    "problem_of",
    "result_of",
    "with_idempotency_key",
]

T = TypeVar("T")

PASSING: Final = frozenset({408, 425, 429, 502, 503, 504})
"""Statuses after which the same request may succeed, and that say that nothing was done."""


class ConnectionLost(Exception):
    """The connection broke, or could not be made; what runs a procedure throws this into it."""


@dataclass(frozen=True, slots=True)
class Response:
    """What the service answered: `headers` by lower-case names."""

    status: int
    headers: Mapping[str, str]
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request, be given its `Response`."""

    request: Request[Any]


@dataclass(frozen=True, slots=True)
class Put:
    """Put bytes to a URL of another server, without the key; be given its `Response`."""

    url: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Fetch:
    """Send a request and write its content as it comes, be given its `Response` without it.

    `write` is given the response, before its first bytes and then with each piece.
    """

    request: Request[Any]
    headers: Mapping[str, str]
    write: Callable[[Response, bytes], None]


@dataclass(frozen=True, slots=True)
class Sleep:
    """Go on after so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Await:
    """Be given what another thread made."""

    future: Future[Any]


Step: TypeAlias = Send | Put | Fetch | Sleep | Await
Procedure: TypeAlias = Generator[Step, Any, T]


@dataclass(frozen=True, slots=True)
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
