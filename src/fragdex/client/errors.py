"""What goes wrong between a client and the service, as one tree.

FragdexError
└── ClientError
    ├── ServiceUnreachable      no response after bounded retries
    ├── UnexpectedResponse      a response that is not what the document says
    ├── InvalidSignature        a webhook's delivery that is not the service's, or is old
    ├── JobFailed               a render, transcription or process that failed
    └── RequestRefused          a problem of the service (RFC 9457)
        ├── InvalidRequest      400, 406, 422: the request breaks a rule, or its bytes do
        ├── Unauthenticated     401: no key, or one that is not known
        ├── Forbidden           403: not with this key or token
        ├── NotFound            404: no such record of this tenant
        ├── Conflict            409: the record's state does not allow it now
        ├── TooLarge            413: over a limit of the service
        ├── TooManyRequests     429: over a rate or a number of jobs
        └── ServiceFault        5xx: a fault or an outage of the service
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fragdex.errors import FragdexError


class ClientError(FragdexError):
    """The root of what a client raises on purpose."""


class ServiceUnreachable(ClientError, ConnectionError):
    """The service gave no response, after bounded retries."""


class UnexpectedResponse(ClientError):
    """A response that is not what the OpenAPI document says: another server, or another version."""


class InvalidSignature(ClientError, ValueError):
    """A delivery to a webhook that the service has not signed, or not lately."""


class JobFailed(ClientError):
    """A render, transcription or process failed.

    Attributes:
        problem: what the service says of it, by the members of RFC 9457.
    """

    def __init__(self, problem: Mapping[str, Any]) -> None:
        super().__init__(str(problem.get("detail") or problem.get("title") or "it failed"))
        self.problem = dict(problem)


class RequestRefused(ClientError):
    """A problem of the service (RFC 9457).

    Attributes:
        status: of HTTP.
        type: the kind of problem, the end of its `type` URI: `upload-gap`.
        action: what to do: `retry`, `resend`, `change`, `prepare`, `authorize`, `stop` or `report`
            (`ProblemAction` of the document); None: not said.
        title: the kind in words.
        problem: all its members; `errors` names fields and parameters.
        retry_after: seconds after which the request may succeed; None: not said.
    """

    def __init__(
        self, status: int, problem: Mapping[str, Any], *, retry_after: float | None = None
    ) -> None:
        detail = str(problem.get("detail") or problem.get("title") or f"HTTP status {status}")
        more = [
            f"{one.get('parameter') or one.get('pointer') or 'body'}: {one.get('detail')}"
            for one in problem.get("errors", ())
            if isinstance(one, Mapping) and one.get("detail") != detail
        ]
        super().__init__(" · ".join([detail, *more]))
        self.status = status
        self.type = str(problem.get("type", "")).rpartition("#")[2]
        self.action = problem.get("action")
        self.title = str(problem.get("title", ""))
        self.problem = dict(problem)
        self.retry_after = retry_after


class InvalidRequest(RequestRefused, ValueError):
    """The request breaks a rule, or its bytes are not what was announced."""


class Unauthenticated(RequestRefused):
    """No key, or one that the service does not know."""


class Forbidden(RequestRefused):
    """Not with this key or token."""


class NotFound(RequestRefused, LookupError):
    """There is no such record of this tenant."""


class Conflict(RequestRefused):
    """The record's state does not allow this now."""


class TooLarge(RequestRefused):
    """Over a limit of the service; `problem["limit"]` is the limit."""


class TooManyRequests(RequestRefused):
    """Over a rate or a number of jobs; `retry_after` says when to come again."""


class ServiceFault(RequestRefused):
    """A fault or an outage of the service."""


_BY_STATUS = {
    400: InvalidRequest,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    406: InvalidRequest,
    409: Conflict,
    413: TooLarge,
    422: InvalidRequest,
    429: TooManyRequests,
}


def refusal(
    status: int, problem: Mapping[str, Any], *, retry_after: float | None = None
) -> RequestRefused:
    """The error that a response is."""
    kind = _BY_STATUS.get(status, ServiceFault if status >= 500 else RequestRefused)
    return kind(status, problem, retry_after=retry_after)
