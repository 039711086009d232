"""tus 1.0.0 over HTTP: its headers as values, and routes.

https://tus.io/protocols/resumable-upload
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import partial
from typing import Any, Final

from anyio.to_thread import run_sync
from fastapi import Request, Response
from starlette.responses import Response as Answer

from fragdex.errors import FragdexError, InvalidRequest, TooLarge, UnsupportedVersion, UploadGap
from fragdex.record import record
from fragdex.service.context import ServiceContext
from fragdex.service.resumable import operations
from fragdex.service.resumable.appending import append
from fragdex.service.resumable.operations import Checksum, ResumableUpload
from fragdex.service.uploads.receiving import drain
from fragdex.service.web.auth import Asking, InContext
from fragdex.service.web.bodies import content_length, need_content_type
from fragdex.service.web.fields import RecordId
from fragdex.service.web.problems import problem_of
from fragdex.service.web.routing import PREFIX, ApiRoute, Handler, api_router
from fragdex.service.web.threads import run_at_store, run_by_records

VERSION: Final = "1.0.0"
EXTENSIONS: Final = (
    "creation",
    "creation-defer-length",
    "creation-with-upload",
    "expiration",
    "checksum",
    "termination",
    "concatenation",
)
CHECKSUMS: Final[Mapping[str, Callable[..., Any]]] = {
    "sha1": hashlib.sha1,
    "sha256": hashlib.sha256,
    "md5": hashlib.md5,
}
CONTENT_TYPE: Final = "application/offset+octet-stream"
MOST_METADATA: Final = 8 << 10
"""Characters of Upload-Metadata; servers of HTTP take about so much of all headers."""
MOST_PARTS: Final = 1000
"""Uploads that one is put together of."""

_KEY = re.compile(r"[^\s,]+")


@record(frozen=True, slots=True)
class Concatenation:
    """A part of an upload (`partial`), or what several parts make; their ids in order."""

    partial: bool
    parts: tuple[str, ...] = ()


def parse_metadata(text: str | None) -> dict[str, str]:
    """`Upload-Metadata`: keys and values in base64, a value may be missing.

    Values that are not UTF-8 are left out: they are given back, and mean nothing here.

    Raises:
        InvalidRequest: it cannot be read.

    >>> parse_metadata("filename ZmlsbS5tcDQ=,is_confidential")
    {'filename': 'film.mp4', 'is_confidential': ''}
    """
    metadata: dict[str, str] = {}
    if text is None or not text.strip():
        return metadata
    if len(text) > MOST_METADATA:
        raise _invalid("Upload-Metadata", f"at most {MOST_METADATA} characters", len(text))
    for pair in text.split(","):
        key, _, value = pair.strip().partition(" ")
        if not _KEY.fullmatch(key) or key in metadata:
            raise _invalid("Upload-Metadata", "keys and values in base64", repr(pair[:80]))
        try:
            metadata[key] = base64.b64decode(value.strip(), validate=True).decode()
        except UnicodeDecodeError:
            continue
        except ValueError as error:
            raise _invalid("Upload-Metadata", "base64", repr(value[:80])) from error
    return metadata


def parse_number(name: str, text: str | None) -> int:
    """A header that is a number of bytes.

    Raises:
        InvalidRequest: it is missing, or no number.

    >>> parse_number("Upload-Offset", "10")
    10
    """
    if text is None or not re.fullmatch(r"[0-9]{1,18}", text):
        raise _invalid(name, "a number of bytes", text)
    return int(text)


def parse_length(length: str | None, deferred: str | None) -> int | None:
    """`Upload-Length` or `Upload-Defer-Length: 1` of a creation; None: the length is said later.

    Raises:
        InvalidRequest: neither of them, both, or one that cannot be read.

    >>> parse_length("10", None), parse_length(None, "1")
    (10, None)
    """
    if deferred is None:
        return parse_number("Upload-Length", length)
    if deferred != "1" or length is not None:
        raise _invalid("Upload-Defer-Length", "1, and no Upload-Length", repr(deferred[:80]))
    return None


def parse_checksum(text: str | None) -> Checksum | None:
    """`Upload-Checksum`: an algorithm and the digest in base64.

    Raises:
        InvalidRequest: it cannot be read, or the algorithm is none of `CHECKSUMS`.

    >>> parse_checksum("sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=").algorithm
    'sha1'
    """
    if text is None:
        return None
    algorithm, _, value = text.strip().partition(" ")
    try:
        digest = base64.b64decode(value, validate=True)
    except ValueError as error:
        raise _invalid("Upload-Checksum", "base64", repr(value[:80])) from error
    known = CHECKSUMS.get(algorithm)
    if known is None or len(digest) != known(usedforsecurity=False).digest_size:
        names = ", ".join(CHECKSUMS)
        raise _invalid("Upload-Checksum", f"a digest of {names}", repr(text[:80]))
    return Checksum(algorithm, digest)


def parse_concat(text: str | None) -> Concatenation | None:
    """`Upload-Concat`: `partial`, or `final;` and the URLs of parts; of these the ids.

    Raises:
        InvalidRequest: it is neither.

    >>> parse_concat("final;/api/v1/tus/a https://example.org/api/v1/tus/b").parts
    ('a', 'b')
    """
    if text is None:
        return None
    if text == "partial":
        return Concatenation(partial=True)
    kind, _, urls = text.partition(";")
    parts = tuple(url.split("?")[0].rstrip("/").rpartition("/")[2] for url in urls.split())
    if kind != "final" or not parts or not all(parts) or len(parts) > MOST_PARTS:
        raise _invalid(
            "Upload-Concat", f"partial, or final; and up to {MOST_PARTS} URLs", repr(text[:80])
        )
    return Concatenation(partial=False, parts=parts)


def http_date(moment: datetime) -> str:
    """A moment as HTTP writes it (RFC 9110, 5.6.7).

    >>> http_date(datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC))
    'Wed, 02 Jan 2030 03:04:05 GMT'
    """
    return format_datetime(moment.astimezone(UTC).replace(microsecond=0), usegmt=True)


def _invalid(name: str, expected: str, found: object) -> InvalidRequest:
    return InvalidRequest(
        f"the header {name} cannot be read", header=name, expected=expected, found=found
    )


PATH: Final = "/tus"


class TusRoute(ApiRoute):
    """A route that speaks the protocol's version in every answer, refusals included."""

    def get_route_handler(self) -> Handler:
        """The handler of a request."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Answer:
            try:
                if request.method != "OPTIONS":
                    _need_version(request)
                response = await handler(request)
            except FragdexError as error:
                response = problem_of(error)
                if isinstance(error, UnsupportedVersion):
                    response.headers["Tus-Version"] = VERSION
            response.headers["Tus-Resumable"] = VERSION
            return response

        return handle


router = api_router("tus", TusRoute)
hidden: dict[str, Any] = {"include_in_schema": False, "response_class": Response}
"""The protocol is its own document; OpenAPI has no words for it."""


def _need_version(request: Request) -> None:
    version = request.headers.get("tus-resumable")
    if version != VERSION:
        raise UnsupportedVersion("unsupported tus version", expected=VERSION, found=version)


@router.options(PATH, **hidden)
def get_tus_abilities(context: InContext) -> Response:
    """What of the protocol is supported."""
    headers = {
        "Tus-Version": VERSION,
        "Tus-Extension": ",".join(EXTENSIONS),
        "Tus-Max-Size": str(context.settings.max_unprocessed_bytes),
        "Tus-Checksum-Algorithm": ",".join(CHECKSUMS),
    }
    return Response(status_code=204, headers=headers)


@router.post(PATH, **hidden)
async def create_tus_upload(request: Request, caller: Asking, context: InContext) -> Response:
    """Begin an upload, with its first bytes where some are sent, or put parts together."""
    sent = request.headers
    metadata, concat = sent.get("upload-metadata"), sent.get("upload-concat")
    known, wanted = parse_metadata(metadata), parse_concat(concat)
    tenant_id = caller.tenant_id
    if wanted is not None and not wanted.partial:
        upload_id = await run_at_store(
            partial(operations.concatenate, metadata=metadata, concat=concat or ""),
            context, tenant_id, wanted.parts, known,
        )  # fmt: skip
    else:
        size = parse_length(sent.get("upload-length"), sent.get("upload-defer-length"))
        if wanted is not None:
            begun = partial(operations.begin_part, metadata=metadata)
            upload_id = await run_by_records(context, lambda c: begun(c, tenant_id, size))
        else:
            begun = partial(operations.begin, metadata=metadata)
            upload_id = await run_by_records(context, lambda c: begun(c, tenant_id, size, known))
    upload = await run_sync(operations.find, context, tenant_id, upload_id)
    if not upload.is_here and _has_bytes(request) and upload.next_byte == 0:
        upload = await _receive(request, context, tenant_id, upload, 0)
    location = f"{PREFIX}{PATH}/{upload.id}"
    return Response(status_code=201, headers={"Location": location, **_headers(upload)})


@router.head(f"{PATH}/{{id}}", **hidden)
def head_tus_upload(id: RecordId, caller: Asking, context: InContext) -> Response:
    """How far an upload is."""
    upload = operations.find(context, caller.tenant_id, id)
    headers = {"Cache-Control": "no-store"}
    if upload.byte_size is None:
        headers["Upload-Defer-Length"] = "1"
    else:
        headers["Upload-Length"] = str(upload.byte_size)
    if upload.metadata is not None:
        headers["Upload-Metadata"] = upload.metadata
    if upload.concat is not None:
        headers["Upload-Concat"] = upload.concat
    return Response(headers={**headers, **_headers(upload)})


@router.patch(f"{PATH}/{{id}}", **hidden)
async def patch_tus_upload(
    id: RecordId, request: Request, caller: Asking, context: InContext
) -> Response:
    """Send the next bytes."""
    need_content_type(request, CONTENT_TYPE)
    offset = parse_number("Upload-Offset", request.headers.get("upload-offset"))
    upload = await run_sync(operations.find, context, caller.tenant_id, id)
    told = request.headers.get("upload-length")
    total = None if told is None else parse_number("Upload-Length", told)
    upload = await _receive(request, context, caller.tenant_id, upload, offset, total)
    return Response(status_code=204, headers=_headers(upload))


@router.delete(f"{PATH}/{{id}}", **hidden)
def delete_tus_upload(id: RecordId, caller: Asking, context: InContext) -> Response:
    """End an upload: what arrived of it is deleted."""
    operations.end(context, caller.tenant_id, id)
    return Response(status_code=204)


@router.post(f"{PATH}/{{id}}", **hidden)
async def override_tus_method(
    id: RecordId, request: Request, caller: Asking, context: InContext
) -> Response:
    """PATCH or DELETE, for clients that can send only POST."""
    method = request.headers.get("x-http-method-override", "").upper()
    if method == "PATCH":
        return await patch_tus_upload(id, request, caller, context)
    if method == "DELETE":
        return await run_sync(delete_tus_upload, id, caller, context)
    raise InvalidRequest(
        "POST to an upload is PATCH or DELETE by X-HTTP-Method-Override",
        header="X-HTTP-Method-Override",
    )


def _headers(upload: ResumableUpload) -> dict[str, str]:
    headers = {"Upload-Offset": str(upload.next_byte)}
    if upload.expires_at is not None:
        headers["Upload-Expires"] = http_date(upload.expires_at)
    return headers


def _has_bytes(request: Request) -> bool:
    if not content_length(request):
        return "transfer-encoding" in request.headers
    need_content_type(request, CONTENT_TYPE)
    return True


async def _receive(
    request: Request,
    context: ServiceContext,
    tenant_id: str,
    upload: ResumableUpload,
    offset: int,
    total: int | None = None,
) -> ResumableUpload:
    if offset != upload.next_byte:
        await drain(request.stream())
        raise UploadGap(
            "the upload is at another byte",
            more={"next_byte": upload.next_byte},
            expected=upload.next_byte,
            found=offset,
        )
    if total is not None and upload.byte_size not in (None, total):
        await drain(request.stream())
        raise InvalidRequest(
            "the upload has another length", header="Upload-Length", expected=upload.byte_size,
            found=total,
        )  # fmt: skip
    limit = upload.limit if total is None else min(total, upload.limit)
    if (content_length(request) or 0) > limit - offset >= 0:
        await drain(request.stream())
        raise TooLarge("the bytes pass the length of the upload", more={"limit": limit - offset})
    checksum = parse_checksum(request.headers.get("upload-checksum"))
    return await append(request, context, tenant_id, upload, offset, checksum, total=total)
