"""Every error class and how HTTP answers it (RFC 9457): one table, and nothing else.

The nearest class of an error's own line of descent that stands in the table decides. A test holds
the table to the error trees, another holds docs/http-api.md to the table.
"""

from __future__ import annotations

import json
import logging
import math
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeVar

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from fragdex import errors as kinds
from fragdex.errors import FragdexError, ServiceError
from fragdex.service.logs import explained
from fragdex.service.web.prefix import public_path

log = logging.getLogger("fragdex.service")

Key = TypeVar("Key")

MEDIA_TYPE = "application/problem+json"
REGISTRY = "https://iana.org/assignments/http-problem-types"


class Action(StrEnum):
    """What a client should do about a problem: the member `action` of each."""

    RETRY = "retry"
    RESEND = "resend"
    CHANGE = "change"
    PREPARE = "prepare"
    AUTHORIZE = "authorize"
    STOP = "stop"
    REPORT = "report"


ACTIONS: Final[Mapping[Action, str]] = {
    Action.RETRY: "send the same request again after the seconds of `Retry-After`",
    Action.RESEND: "send the missing or damaged bytes again, from `next_byte` if it is there",
    Action.CHANGE: "change the request; the same one is refused again",
    Action.PREPARE: "change what stands in the way (`detail` says what), then send the same again",
    Action.AUTHORIZE: "send a key or token that allows this",
    Action.STOP: "do not send it again: what it requests is over, gone, or was never there",
    Action.REPORT: "tell the operator of the service: no request changes it",
}
"""What the actions mean, as the document and the docs say it."""


class Row(NamedTuple):
    """What an error class is to a caller of HTTP."""

    status: int
    action: Action
    slug: str
    title: str
    registered: bool = False
    """Whether IANA registers the type ("HTTP Problem Types")."""

    @property
    def type(self) -> str:
        """The problem's type: a place in IANA's registry, or on the service's own page."""
        return f"{REGISTRY if self.registered else public_path('/docs')}#{self.slug}"


def _rows(told: Mapping[Key, tuple[Any, ...]]) -> dict[Key, Row]:
    return {
        key: Row(status, Action(action), *more) for key, (status, action, *more) in told.items()
    }


PROBLEMS: dict[type[FragdexError], Row] = _rows({
    # ---- the service's own
    kinds.ServiceError: (500, "report", "fault", "A fault of the service"),
    kinds.RecordNotFound: (404, "stop", "not-found", "No such record"),
    kinds.NotYet: (404, "retry", "not-yet", "It is being made"),
    kinds.UploadIncomplete: (404, "resend", "upload-incomplete", "Bytes are missing"),
    kinds.Unauthenticated: (401, "authorize", "unauthenticated", "A key is needed"),
    kinds.Forbidden: (403, "authorize", "forbidden", "The key or token does not allow this"),
    kinds.InvalidRequest: (422, "change", "invalid-request", "The request breaks a rule"),
    kinds.IdempotencyMismatch: (
        422, "change", "idempotency-mismatch", "The Idempotency-Key belongs to another request"),
    kinds.Unprocessable: (422, "change", "unprocessable", "These bytes cannot be used"),
    kinds.DigestMismatch: (422, "resend", "md5-mismatch", "The bytes have another md5"),
    kinds.BodyLengthMismatch: (
        422, "resend", "body-length-mismatch", "The body has another length than announced"),
    kinds.PageFailed: (422, "change", "page-failed", "The page cannot be rendered"),
    kinds.BrowserGone: (503, "retry", "browser-gone", "The browser ended"),
    kinds.Conflict: (409, "change", "conflict", "The record does not allow this request"),
    kinds.RequestRunning: (
        409, "retry", "request-running", "The first of these requests is running"),
    kinds.Obstructed: (409, "prepare", "obstructed", "Something else stands in the way"),
    kinds.Finished: (409, "stop", "finished", "The record is final"),
    kinds.UploadGap: (409, "resend", "upload-gap", "Bytes before this chunk are missing"),
    kinds.UploadOffsetMismatch: (
        409, "resend", "mismatching-upload-offset", "Mismatching Upload Offset", True),
    kinds.UploadCompleted: (400, "stop", "completed-upload", "Upload Is Completed", True),
    kinds.UploadLengthMismatch: (
        400, "change", "inconsistent-upload-length", "Inconsistent Upload Length Values", True),
    kinds.UploadBusy: (409, "retry", "upload-busy", "Another request is writing these bytes"),
    kinds.Superseded: (409, "stop", "superseded", "A later request took its place"),
    kinds.NotReady: (409, "retry", "not-ready", "It is being made"),
    kinds.BytesMissing: (409, "resend", "bytes-missing", "Bytes of it are missing"),
    kinds.NeverReady: (409, "stop", "never-ready", "It failed, or was cancelled"),
    kinds.TooLarge: (413, "change", "too-large", "Larger than this service accepts"),
    kinds.QuotaExceeded: (413, "prepare", "quota-exceeded", "The tenant's quota is exceeded"),
    kinds.TooManyRequests: (429, "retry", "too-many-requests", "Too many requests"),
    kinds.RequestTimedOut: (
        408, "resend", "request-timed-out", "The request body stopped arriving"),
    kinds.NotAcceptable: (406, "change", "not-acceptable", "This format is not available"),
    kinds.UnsupportedMediaType: (
        415, "change", "unsupported-media-type", "The body has another type"),
    kinds.UnsupportedVersion: (
        412, "change", "unsupported-version", "The protocol has another version"),
    kinds.ChecksumMismatch: (460, "resend", "checksum-mismatch", "The bytes have another checksum"),
    kinds.StoreFull: (507, "retry", "store-full", "No space left"),
    kinds.MediaUnavailable: (
        502, "retry", "media-unavailable", "The server of the media does not answer"),
    kinds.Unavailable: (503, "retry", "unavailable", "Not available at the moment"),
    kinds.EngineUnavailable: (
        501, "report", "engine-unavailable", "A part of the service is missing"),
    kinds.ConfigError: (500, "report", "misconfigured", "The service is misconfigured"),
    # ---- the library's: what a caller's bytes and numbers are guilty of
    kinds.FragdexError: (500, "report", "library-fault", "A fault of the library"),
    kinds.FormatError: (422, "change", "bad-format", "The bytes break the rules of their format"),
    kinds.NotISOBMFF: (422, "change", "not-isobmff", "This is not an ISO base media file"),
    kinds.MalformedBox: (422, "change", "malformed-box", "A box contradicts the standard"),
    kinds.TruncatedInput: (422, "change", "truncated", "The file ends too early"),
    kinds.LimitExceeded: (422, "change", "limit-exceeded", "A number in the file exceeds a limit"),
    kinds.DamagedIndex: (422, "change", "damaged-index", "The index cannot be trusted"),
    kinds.MalformedCaptions: (422, "change", "malformed-captions", "The captions cannot be read"),
    kinds.InvalidDigest: (422, "change", "invalid-md5", "This is not an md5"),
    kinds.BuildError: (422, "change", "cannot-write", "A value does not fit this form"),
    kinds.InvalidRange: (422, "change", "invalid-range", "These positions are not a range"),
    kinds.TrackNotFound: (404, "stop", "no-such-track", "No such track"),
    kinds.InexactIndex: (422, "change", "inexact-index", "The index has no samples"),
    kinds.UndecodableMedia: (422, "change", "undecodable-media", "The media cannot be decoded"),
    kinds.UnverifiedSync: (422, "change", "unverified-sync", "Sync samples cannot be verified"),
    kinds.NoSyncSample: (422, "change", "no-sync-sample", "There is no sync sample to seek to"),
    kinds.IndexMismatch: (422, "change", "index-mismatch", "The index does not describe this file"),
    # ---- the library's: the service reads its own store through it
    kinds.SourceError: (503, "retry", "source-error", "Reading stored bytes failed"),
    kinds.SourceNotFound: (404, "stop", "bytes-not-found", "The bytes no longer exist"),
    kinds.SourceUnavailable: (503, "retry", "source-unavailable", "The store does not answer"),
    kinds.SourceChanged: (503, "retry", "source-changed", "Stored bytes changed while being read"),
    kinds.RangeIgnored: (500, "report", "range-ignored", "The store does not answer ranges"),
    kinds.BudgetExceeded: (500, "report", "budget-exceeded", "A reading budget was used up"),
    kinds.MissingExtra: (501, "report", "missing-extra", "A package of the service is missing"),
})  # fmt: skip

HTTP: dict[int, Row] = _rows({
    400: (400, "change", "bad-request", "The request cannot be read"),
    404: (404, "stop", "no-such-path", "No such path"),
    405: (405, "change", "method-not-allowed", "The path does not support this method"),
    412: (412, "change", "precondition-failed", "The bytes are not those of If-Match"),
    413: (413, "change", "too-large", "Larger than this service accepts"),
    416: (416, "change", "range-not-satisfiable", "The bytes end before this range"),
    500: (500, "report", "fault", "A fault of the service"),
})  # fmt: skip
"""What is refused before any operation is asked."""

# What these say may name the machine's own paths and addresses.
SILENT: tuple[type[FragdexError], ...] = (kinds.SourceError, kinds.MissingExtra, kinds.ConfigError)


def row_of(error: type[BaseException]) -> Row:
    """The row of the nearest ancestor.

    >>> row_of(kinds.UploadGap).status, row_of(kinds.NotISOBMFF).slug
    (409, 'not-isobmff')
    """
    for ancestor in error.__mro__:
        if ancestor in PROBLEMS:
            return PROBLEMS[ancestor]
    return HTTP[500]


def problem(
    row: Row,
    detail: str,
    *,
    errors: Sequence[Mapping[str, Any]] = (),
    more: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """An answer of RFC 9457: the standard members first, then `more`, then `errors`."""
    content: dict[str, Any] = {
        "type": row.type,
        "title": row.title,
        "status": row.status,
        "detail": detail,
        "action": row.action,
    }
    content.update((name, value) for name, value in (more or {}).items() if name not in content)
    if errors:
        content["errors"] = list(errors)
    return Response(
        json.dumps(content, allow_nan=False, default=str).encode(),
        status_code=row.status,
        media_type=MEDIA_TYPE,
        headers=dict(headers or {}),
    )


def problem_of(error: FragdexError) -> Response:
    """The answer to an error that was raised on purpose."""
    row = row_of(type(error))
    more: dict[str, Any] = {}
    headers: dict[str, str] = {}
    errors: list[dict[str, Any]] = []
    if isinstance(error, ServiceError):
        more.update(error.more)
        if error.header is not None:
            errors.append({"detail": error.message, "header": error.header})
        elif error.pointer is not None:
            in_body = error.pointer[:1] in ("", "/")
            place = {"pointer": f"#{error.pointer}"} if in_body else {"parameter": error.pointer}
            errors.append({"detail": error.message, **place})
    if error.path is not None:
        more["box"] = error.path
    if error.offset is not None:
        more["offset"] = error.offset
    detail = str(error)
    if isinstance(error, SILENT):
        log.error("%s: %s", type(error).__name__, explained(error))
        detail = row.title
    elif row.status in (503, 507):
        log.warning("%s", explained(error))
    if row.action == Action.RETRY:
        seconds = getattr(error, "retry_after", None) or 1
        headers["Retry-After"] = str(max(1, math.ceil(seconds)))
    if row.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="fragdex"'
    if row.status == 408:
        headers["Connection"] = "close"
    return problem(row, detail, errors=errors, more=more, headers=headers)


def unexpected(error: BaseException) -> Response:
    """The answer to a fault: it names nothing but the line of the log where it stands."""
    instance = f"urn:uuid:{uuid.uuid4()}"
    log.error("fault %s", instance, exc_info=error)
    return problem(HTTP[500], "The fault was written down.", more={"instance": instance})


def install(app: FastAPI) -> None:
    """Let `app` answer every refusal as a problem, the router's own ones included."""

    async def ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, FragdexError)
        if request.method != "GET" and _is_of_a_file(error):
            # the path has the id of the record
            log.info("%s %s was refused: %s", request.method, request.url.path, explained(error))
        return problem_of(error)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return _invalid(error.errors())

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        row = HTTP.get(error.status_code)
        if row is None:
            action = Action.CHANGE if error.status_code < 500 else Action.REPORT
            row = Row(error.status_code, action, "refused", error.detail)
        headers = dict(error.headers or {})
        if error.status_code == 405:
            headers["Allow"] = ", ".join(_methods_at(app, request.url.path))
        return problem(row, row.title, headers=headers)

    async def gone(request: Request, error: Exception) -> Response:
        return problem(HTTP[400], "The client went away.")  # nobody reads it

    app.add_exception_handler(FragdexError, ours)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(ClientDisconnect, gone)


def _is_of_a_file(error: FragdexError) -> bool:
    """Whether bytes were refused, and not a parameter or a field."""
    return row_of(type(error)).status == 422 and not isinstance(error, kinds.InvalidRequest)


def _methods_at(app: FastAPI, path: str) -> list[str]:
    """What a path takes (RFC 9110, 10.2.1); the router itself knows of one route at a time."""
    matches: list[tuple[int, list[str]]] = []
    for template, item in app.openapi()["paths"].items():
        literal = re.sub(r"\{\w+\}", "", template)
        pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template))
        if re.fullmatch(pattern, path):
            methods = {method.upper() for method in item}
            matches.append((len(literal), [*methods | ({"HEAD"} if "GET" in methods else set())]))
    # `/image_files/{id}.json` and `/image_files/{id}` both match: the closer one is meant
    return sorted(max(matches, default=(0, []))[1])


def _invalid(problems: Iterable[Any]) -> Response:
    errors: list[dict[str, Any]] = []
    for one in problems:
        place, *rest = one["loc"] or ("body",)
        if one["type"] == "json_invalid":
            reason = one.get("ctx", {}).get("error", one["msg"])
            errors.append({"detail": f"This is not JSON: {reason}", "pointer": "#"})
        elif place == "body":
            steps = (str(step).replace("~", "~0").replace("/", "~1") for step in rest)
            errors.append(
                {"detail": sentence_of(one), "pointer": "#" + "".join(f"/{s}" for s in steps)}
            )
        else:
            named = "header" if place == "header" else "parameter"
            errors.append({"detail": sentence_of(one), named: ".".join(map(str, rest))})
    first = errors[0]
    where = first.get("header") or first.get("parameter")
    where = where or first["pointer"].removeprefix("#").lstrip("/") or "the body"
    detail = f"{where}: {first['detail']}"
    return problem(PROBLEMS[kinds.InvalidRequest], detail, errors=errors)


_SENTENCES: Final[Mapping[str, str]] = {
    "missing": "this is needed",
    "string_type": "a text is expected",
    "string_too_short": "at least {min_length} characters are expected",
    "string_too_long": "at most {max_length} characters are expected",
    "string_pattern_mismatch": "a text that matches {pattern} is expected",
    "string_unicode": "a text in UTF-8 is expected",
    "int_type": "a whole number is expected",
    "int_parsing": "a whole number is expected",
    "int_parsing_size": "a smaller number is expected",
    "int_from_float": "a whole number is expected",
    "float_type": "a number is expected",
    "float_parsing": "a number is expected",
    "finite_number": "a finite number is expected",
    "bool_type": "true or false is expected",
    "bool_parsing": "true or false is expected",
    "greater_than": "a number above {gt} is expected",
    "greater_than_equal": "a number greater than or equal to {ge} is expected",
    "less_than": "a number below {lt} is expected",
    "less_than_equal": "a number less than or equal to {le} is expected",
    "multiple_of": "a multiple of {multiple_of} is expected",
    "enum": "one of {expected} is expected",
    "literal_error": "one of {expected} is expected",
    "list_type": "a list is expected",
    "set_type": "a list is expected",
    "tuple_type": "a list is expected",
    "dict_type": "an object is expected",
    "mapping_type": "an object is expected",
    "model_type": "an object is expected",
    "model_attributes_type": "an object is expected",
    "too_long": "at most {max_length} are expected, not {actual_length}",
    "too_short": "at least {min_length} are expected, not {actual_length}",
    "value_error": "{error}",
    "assertion_error": "{error}",
    "union_tag_not_found": "{discriminator} is needed",
    "union_tag_invalid": "one of {expected_tags} is expected",
    "none_required": "null is expected",
    "recursion_loop": "an object that does not hold itself is expected",
}
"""What pydantic's types of errors mean, in the words of the service (Errors of pydantic-core)."""


def sentence_of(one: Mapping[str, Any]) -> str:
    """A sentence for what validation found, and what was sent, if it is short.

    Args:
        one: of `ValidationError.errors()`.

    >>> sentence_of({"type": "greater_than_equal", "ctx": {"ge": 1}, "input": 0})
    'a number greater than or equal to 1 is expected, not 0'
    """
    context = {name: str(value) for name, value in (one.get("ctx") or {}).items()}
    kind = one["type"]
    template = _SENTENCES.get(kind, "another value is expected ({type})")
    sentence = template.format_map({**context, "type": kind})
    if kind in ("missing", "value_error", "assertion_error"):
        return sentence
    try:
        shown = json.dumps(one.get("input"), ensure_ascii=False)
    except (TypeError, ValueError):
        return sentence
    return f"{sentence}, not {shown}" if len(shown) <= 60 and ", not " not in sentence else sentence


def answers(*errors: type[FragdexError]) -> dict[int | str, dict[str, Any]]:
    """What these errors answer, for the `responses` of a route.

    `NotReady` stands for its subclasses too: which one it is depends on the record.

    >>> sorted(answers(kinds.RecordNotFound, kinds.UploadGap, kinds.UploadBusy))
    [404, 409]
    """
    by_status: dict[int, dict[str, Row]] = {}
    for error in errors:
        for kind in (error, *(error.__subclasses__() if error is kinds.NotReady else ())):
            row = row_of(kind)
            by_status.setdefault(row.status, {})[row.title] = row
    schema = {"$ref": "#/components/schemas/Problem"}
    responses: dict[int | str, dict[str, Any]] = {}
    for status, rows in sorted(by_status.items()):
        responses[status] = {
            "description": "; ".join(rows),
            "content": {MEDIA_TYPE: {"schema": schema}},
        }
        if any(row.action == Action.RETRY for row in rows.values()):
            responses[status]["headers"] = RETRY_AFTER
    return responses


UNMADE: Final = (kinds.RecordNotFound, kinds.UploadIncomplete, kinds.NotYet)
"""What is not found where something is made of an upload, for `answers`."""
RETRY_AFTER: Final = {"Retry-After": {"$ref": "#/components/headers/RetryAfter"}}
"""Of the responses that tell a client to send the same again."""
