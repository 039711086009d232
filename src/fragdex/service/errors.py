"""What goes wrong in the service, as one tree beside the library's own.

    FragdexError
    └── ServiceError
        ├── RecordNotFound          no such record of this tenant
        ├── Unauthenticated         no key, an unknown one, or a revoked one
        ├── Forbidden               a URL token or key that does not allow this
        ├── InvalidRequest          a field or parameter that breaks a rule
        │   ├── IdempotencyMismatch the same Idempotency-Key with another request
        │   └── UploadLengthMismatch lengths of a resumable upload that contradict each other
        ├── Unprocessable           bytes that are not what they were announced as
        │   └── PageFailed          a page that cannot be rendered, by its own fault
        ├── BrowserGone             the browser of a render ended; another one is started
        ├── Conflict                the record's state does not allow it now
        │   ├── UploadGap           a chunk that starts beyond the bytes that are here
        │   ├── UploadOffsetMismatch bytes of a resumable upload that begin elsewhere
        │   ├── UploadCompleted     a resumable upload that takes no more bytes
        │   ├── UploadBusy          another upload of the same bytes is going on
        │   └── NotReady            the result is not there yet
        ├── TooLarge                over a limit of this service
        │   └── QuotaExceeded       the tenant stores as much as it may
        ├── TooManyRequests         over the key's rate limit, or the tenant's jobs
        ├── RequestTimedOut         the body of a request stopped coming
        ├── NotAcceptable           none of the forms the caller takes is one we have
        ├── UnsupportedMediaType    a body of another type than this path takes
        ├── UnsupportedVersion      a version of a protocol that is not spoken here
        ├── ChecksumMismatch        the bytes of a request have another checksum
        ├── StoreFull               no room left where bytes are kept
        ├── Unavailable             the database or the store does not answer
        │   └── EngineUnavailable   a browser, model or encoder that is not installed
        └── ConfigError             a setting that cannot be used

They know nothing of HTTP: `web/problems.py` maps every class to its status in one table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fragdex.errors import FragdexError

__all__ = [
    "BrowserGone",
    "ChecksumMismatch",
    "ConfigError",
    "Conflict",
    "EngineUnavailable",
    "Forbidden",
    "IdempotencyMismatch",
    "InvalidRequest",
    "NotAcceptable",
    "NotReady",
    "PageFailed",
    "QuotaExceeded",
    "RecordNotFound",
    "RequestTimedOut",
    "ServiceError",
    "StoreFull",
    "TooLarge",
    "TooManyRequests",
    "Unauthenticated",
    "Unavailable",
    "Unprocessable",
    "UnsupportedMediaType",
    "UnsupportedVersion",
    "UploadBusy",
    "UploadCompleted",
    "UploadGap",
    "UploadLengthMismatch",
    "UploadOffsetMismatch",
]


class ServiceError(FragdexError):
    """The root of what the service raises on purpose.

    Args:
        message: one sentence for the caller; never a path, a query or another tenant's data.
        pointer: JSON pointer (RFC 6901) into the request body, or the name of a parameter.
        more: members for the answer besides the standard ones (`next_byte`, `limit` …).
        retry_after: seconds after which the same request may succeed.
    """

    def __init__(
        self,
        message: str,
        *,
        pointer: str | None = None,
        more: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
        **place: Any,
    ) -> None:
        super().__init__(message, **place)
        self.pointer = pointer
        self.more = dict(more or {})
        self.retry_after = retry_after


class RecordNotFound(ServiceError, LookupError):
    """No such record of this tenant; another tenant's record is not found either."""


class Unauthenticated(ServiceError):
    """The request carries no key, an unknown one, or a revoked one."""


class Forbidden(ServiceError):
    """The token or key is genuine, and does not allow this."""


class InvalidRequest(ServiceError, ValueError):
    """A field or parameter that breaks a rule; `pointer` names it."""


class IdempotencyMismatch(InvalidRequest):
    """The Idempotency-Key was used for another request before."""


class UploadLengthMismatch(InvalidRequest):
    """The lengths of a resumable upload contradict each other, or its bytes pass them."""


class Unprocessable(ServiceError):
    """The bytes are not what they were announced as (md5, size, format)."""


class PageFailed(Unprocessable):
    """A page that cannot be rendered, by its own fault: it hangs, crashes, or never says how long.

    Trying again does not help. `more` may hold what the page said until then: `console`,
    `blocked`, `refused`.
    """


class BrowserGone(ServiceError, ConnectionError):
    """The browser ended though its page is not known to be guilty; another one may do it."""


class Conflict(ServiceError):
    """The record's state does not allow this now."""


class UploadGap(Conflict):
    """The chunk starts beyond the bytes that are here; `more["next_byte"]` says where to go on."""


class UploadOffsetMismatch(Conflict):
    """The bytes begin at another offset than the upload's; `more["expected-offset"]` is that."""


class UploadCompleted(Conflict):
    """The upload was completed: it takes no more bytes."""


class UploadBusy(Conflict):
    """Another request is writing these bytes; its lease ends in seconds if it is dead."""


class NotReady(Conflict):
    """What is asked for is being made, or will never be; `more["state"]` says which."""


class TooLarge(ServiceError):
    """More than this service takes; `more["limit"]` is the limit in bytes."""


class QuotaExceeded(TooLarge):
    """The tenant would store more than its quota; nothing of it was kept."""


class TooManyRequests(ServiceError):
    """Over the rate limit of the key, or the limit of jobs in progress of the tenant.

    `retry_after` says when to come again.
    """


class RequestTimedOut(ServiceError):
    """The body of a request stopped coming; the connection is closed."""


class NotAcceptable(ServiceError):
    """None of the forms that the caller takes is one there is."""


class UnsupportedMediaType(ServiceError):
    """A body of another type than this path takes."""


class UnsupportedVersion(ServiceError):
    """A version of a protocol that is not spoken here."""


class ChecksumMismatch(ServiceError):
    """The bytes of a request have another checksum than it says; nothing of them was taken."""


class StoreFull(ServiceError, OSError):
    """No room left where bytes are kept; nothing that was here is lost."""


class Unavailable(ServiceError):
    """The database or the store does not answer; the service recovers by itself."""


class EngineUnavailable(Unavailable):
    """A program, model or encoder is missing; `advice` says how to get it."""


class ConfigError(ServiceError):
    """A setting that cannot be used; names the setting and where its value came from."""
