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
from typing import Any, Final, NamedTuple

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

MEDIA_TYPE = "application/problem+json"
REGISTRY = "https://iana.org/assignments/http-problem-types"


class Row(NamedTuple):
    """What an error class is to a caller of HTTP."""

    status: int
    slug: str
    title: str
    registered: bool = False
    """Whether IANA registers the type ("HTTP Problem Types")."""

    @property
    def type(self) -> str:
        """The problem's type: a place in IANA's registry, or on the service's own page."""
        return f"{REGISTRY if self.registered else public_path('/docs')}#{self.slug}"


PROBLEMS: dict[type[FragdexError], Row] = {
    # ---- the service's own
    kinds.ServiceError: Row(500, "fault", "A fault of the service"),
    kinds.RecordNotFound: Row(404, "not-found", "No such record"),
    kinds.Unauthenticated: Row(401, "unauthenticated", "A key is needed"),
    kinds.Forbidden: Row(403, "forbidden", "The key or token does not allow this"),
    kinds.InvalidRequest: Row(422, "invalid-request", "The request breaks a rule"),
    kinds.IdempotencyMismatch: Row(
        422, "idempotency-mismatch", "The Idempotency-Key belongs to another request"
    ),
    kinds.Unprocessable: Row(422, "unprocessable", "The bytes differ from what was announced"),
    kinds.PageFailed: Row(422, "page-failed", "The page cannot be rendered"),
    kinds.BrowserGone: Row(503, "browser-gone", "The browser ended"),
    kinds.Conflict: Row(409, "conflict", "The record's state does not allow this now"),
    kinds.UploadGap: Row(409, "upload-gap", "Bytes before this chunk are missing"),
    kinds.UploadOffsetMismatch: Row(
        409, "mismatching-upload-offset", "Mismatching Upload Offset", True
    ),
    kinds.UploadCompleted: Row(400, "completed-upload", "Upload Is Completed", True),
    kinds.UploadLengthMismatch: Row(
        400, "inconsistent-upload-length", "Inconsistent Upload Length Values", True
    ),
    kinds.UploadBusy: Row(409, "upload-busy", "Another request is writing these bytes"),
    kinds.NotReady: Row(409, "not-ready", "It is not ready"),
    kinds.TooLarge: Row(413, "too-large", "Larger than this service accepts"),
    kinds.QuotaExceeded: Row(413, "quota-exceeded", "The tenant's quota is exceeded"),
    kinds.TooManyRequests: Row(429, "too-many-requests", "Too many requests"),
    kinds.RequestTimedOut: Row(408, "request-timed-out", "The request body stopped arriving"),
    kinds.NotAcceptable: Row(406, "not-acceptable", "This format is not available"),
    kinds.UnsupportedMediaType: Row(415, "unsupported-media-type", "The body has another type"),
    kinds.UnsupportedVersion: Row(412, "unsupported-version", "The protocol has another version"),
    kinds.ChecksumMismatch: Row(460, "checksum-mismatch", "The bytes have another checksum"),
    kinds.StoreFull: Row(507, "store-full", "No space left"),
    kinds.Unavailable: Row(503, "unavailable", "Not available at the moment"),
    kinds.EngineUnavailable: Row(503, "engine-unavailable", "A part of the service is missing"),
    kinds.ConfigError: Row(500, "misconfigured", "The service is misconfigured"),
    # ---- the library's: what a caller's bytes and numbers are guilty of
    kinds.FragdexError: Row(500, "library-fault", "A fault of the library"),
    kinds.FormatError: Row(422, "bad-format", "The bytes break the rules of their format"),
    kinds.NotISOBMFF: Row(422, "not-isobmff", "This is not an ISO base media file"),
    kinds.MalformedBox: Row(422, "malformed-box", "A box contradicts the standard"),
    kinds.TruncatedInput: Row(422, "truncated", "The file ends too early"),
    kinds.LimitExceeded: Row(422, "limit-exceeded", "A number in the file exceeds a limit"),
    kinds.DamagedIndex: Row(422, "damaged-index", "The index cannot be trusted"),
    kinds.MalformedCaptions: Row(422, "malformed-captions", "The captions cannot be read"),
    kinds.InvalidDigest: Row(422, "invalid-md5", "This is not an md5"),
    kinds.BuildError: Row(422, "cannot-write", "A value does not fit this form"),
    kinds.InvalidRange: Row(422, "invalid-range", "These positions are not a range"),
    kinds.TrackNotFound: Row(404, "no-such-track", "No such track"),
    kinds.InexactIndex: Row(422, "inexact-index", "The index has no samples"),
    kinds.UndecodableMedia: Row(422, "undecodable-media", "The media cannot be decoded"),
    kinds.UnverifiedSync: Row(422, "unverified-sync", "Sync samples cannot be verified"),
    kinds.NoSyncSample: Row(422, "no-sync-sample", "There is no sync sample to seek to"),
    kinds.IndexMismatch: Row(422, "index-mismatch", "The index does not describe this file"),
    # ---- the library's: the service reads its own store through it
    kinds.SourceError: Row(503, "source-error", "Reading stored bytes failed"),
    kinds.SourceNotFound: Row(404, "bytes-not-found", "The bytes no longer exist"),
    kinds.SourceUnavailable: Row(503, "source-unavailable", "The store does not answer"),
    kinds.SourceChanged: Row(503, "source-changed", "Stored bytes changed while being read"),
    kinds.RangeIgnored: Row(503, "range-ignored", "The store does not answer ranges"),
    kinds.BudgetExceeded: Row(503, "budget-exceeded", "A reading budget was used up"),
    kinds.MissingExtra: Row(503, "missing-extra", "A package of the service is missing"),
}

HTTP: dict[int, Row] = {
    400: Row(400, "bad-request", "The request cannot be read"),
    404: Row(404, "no-such-path", "No such path"),
    405: Row(405, "method-not-allowed", "The path does not support this method"),
    412: Row(412, "precondition-failed", "The bytes are not those of If-Match"),
    413: Row(413, "too-large", "Larger than this service accepts"),
    416: Row(416, "range-not-satisfiable", "The bytes end before this range"),
    500: Row(500, "fault", "A fault of the service"),
}
"""What is refused before any operation is asked."""

# What these say may name the machine's own paths and addresses.
SILENT: tuple[type[FragdexError], ...] = (
    kinds.SourceError,
    kinds.MissingExtra,
    kinds.ConfigError,
)


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
        if error.retry_after is not None:
            headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
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
    if row.status == 503:
        headers.setdefault("Retry-After", "1")
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
            row = Row(error.status_code, "refused", error.detail)
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

    >>> sorted(answers(kinds.RecordNotFound, kinds.UploadGap, kinds.UploadBusy))
    [404, 409]
    """
    by_status: dict[int, list[str]] = {}
    for error in errors:
        row = row_of(error)
        titles = by_status.setdefault(row.status, [])
        if row.title not in titles:
            titles.append(row.title)
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": "; ".join(titles), "content": {MEDIA_TYPE: {"schema": schema}}}
        for status, titles in sorted(by_status.items())
    }
