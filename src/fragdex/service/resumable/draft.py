"""draft-ietf-httpbis-resumable-upload-12 over HTTP: creation, offset, append, cancellation.

Its fields are structured fields (RFC 9651), here as values. One that is not as its definition says
counts as not sent.
"""

from __future__ import annotations

import base64
import re
from datetime import UTC
from email.message import Message
from email.utils import collapse_rfc2231_value
from functools import partial
from typing import Any, Final

from anyio.to_thread import run_sync
from fastapi import Request, Response
from starlette.responses import Response as Answer

from fragdex.errors import (
    ChecksumMismatch,
    Forbidden,
    FragdexError,
    InvalidRequest,
    QuotaExceeded,
    RecordNotFound,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unprocessable,
    UnsupportedMediaType,
    UploadBusy,
    UploadCompleted,
    UploadGap,
    UploadLengthMismatch,
    UploadOffsetMismatch,
)
from fragdex.service.context import ServiceContext
from fragdex.service.files import operations as files
from fragdex.service.files.operations import AnyFile
from fragdex.service.records.identifiers import instant
from fragdex.service.resumable import operations
from fragdex.service.resumable.appending import announce, append, reporting_progress, running_of
from fragdex.service.resumable.operations import Checksum, ResumableUpload
from fragdex.service.uploads.receiving import drain
from fragdex.service.web.auth import Asking, InContext
from fragdex.service.web.bodies import content_length, need_content_type
from fragdex.service.web.fields import RecordId
from fragdex.service.web.prefix import public_path
from fragdex.service.web.problems import answers, problem_of, row_of
from fragdex.service.web.routing import PREFIX, ApiRoute, Handler, api_router
from fragdex.service.web.threads import run_by_records

CONTENT_TYPE: Final = "application/partial-upload"
ALGORITHMS: Final = {"sha-512": ("sha512", 64), "sha-256": ("sha256", 32)}
"""Those that RFC 9530 calls active, the stronger first: their names in hashlib, and bytes."""

_BARE = (
    r"-?\d{1,12}\.\d{1,3}|-?\d{1,15}|\?[01]|:[A-Za-z0-9+/=]*:"
    r'|"(?:[ !#-\[\]-~]|\\["\\])*"|[A-Za-z*][A-Za-z0-9!#$%&\'*+.^_`|~:/-]*'
)
_PARAMETERS = rf"(?:; *[a-z*][a-z0-9_.*-]*(?:=(?:{_BARE}))?)*"
_INTEGER = re.compile(rf" *(-?\d{{1,15}}){_PARAMETERS} *")
_BOOLEAN = re.compile(rf" *\?([01]){_PARAMETERS} *")
_DIGEST = re.compile(rf"[ \t]*([a-z*][a-z0-9_.*-]*)=:([A-Za-z0-9+/=]*):{_PARAMETERS}[ \t]*")


def integer(text: str | None) -> int | None:
    """A number of bytes; None if it is invalid.

    >>> integer("10"), integer("10;a=1"), integer("-1"), integer("10, 11"), integer("1.0")
    (10, 10, None, None, None)
    """
    match = None if text is None else _INTEGER.fullmatch(text)
    number = -1 if match is None else int(match[1])
    return None if number < 0 else number


def boolean(text: str | None) -> bool | None:
    """Whether; None where the field does not say it.

    >>> boolean("?1"), boolean("?0"), boolean("true"), boolean("?1, ?1")
    (True, False, None, None)
    """
    match = None if text is None else _BOOLEAN.fullmatch(text)
    return None if match is None else match[1] == "1"


def item(value: bool | int) -> str:
    """A value as a field.

    >>> item(True), item(10)
    ('?1', '10')
    """
    return f"?{value:d}" if isinstance(value, bool) else str(value)


def limits(**values: int | None) -> str:
    """`Upload-Limit`, of the limits that there are.

    >>> limits(max_size=100, max_age=None)
    'max-size=100'
    """
    return ", ".join(
        f"{name.replace('_', '-')}={number}"
        for name, number in values.items()
        if number is not None
    )


def _digests(text: str | None) -> dict[str, bytes]:
    digests: dict[str, bytes] = {}
    for member in (text or "").split(","):
        one = _DIGEST.fullmatch(member)
        if one is None:
            return {}
        try:
            digests[one[1]] = base64.b64decode(one[2], validate=True)
        except ValueError:
            return {}
    return digests


def content_digest(text: str | None) -> Checksum | None:
    """The strongest digest of `Content-Digest` (RFC 9530, 2) that is known here, or None.

    >>> content_digest("md5=:1B2M2Y8AsgTpgAmY7PhCfg==:") is None
    True
    """
    digests = _digests(text)
    for name, (function, size) in ALGORITHMS.items():
        if len(digests.get(name, b"")) == size:
            return Checksum(function, digests[name])
    return None


def md5_of(text: str | None) -> str | None:
    """The md5 in `Repr-Digest` (RFC 9530, 3), by which files are known here, or None.

    >>> md5_of("md5=:1B2M2Y8AsgTpgAmY7PhCfg==:")
    'd41d8cd98f00b204e9800998ecf8427e'
    """
    digest = _digests(text).get("md5", b"")
    return digest.hex() if len(digest) == 16 else None


def filename_of(text: str | None) -> str | None:
    """The name in `Content-Disposition` (RFC 6266), without folders; None where there is none.

    >>> filename_of("inline; filename*=UTF-8''film%20%C3%A4.mp4"), filename_of("inline")
    ('film ä.mp4', None)
    """
    if text is None:
        return None
    message = Message()
    message["Content-Disposition"] = text
    try:
        given = message.get_params([], "Content-Disposition")
        names = [value for name, value in given if name == "filename"]
        # the extended form comes before the other (RFC 6266, 4.3)
        names.sort(key=lambda value: isinstance(value, str))
        name = collapse_rfc2231_value(names[0]) if names else ""
    except (ValueError, LookupError, TypeError):
        return None
    return re.split(r"[/\\]", name)[-1].strip() or None


STATE: Final = "fragdex.upload_state"
"""Where a request keeps fields that its refusal says too."""
UNREAD: Final = (Unauthenticated, Forbidden, TooManyRequests, UploadBusy)
"""Refusals of requests that are not read to their end."""
PATTERNS: Final = {"boolean": r"^\?[01]$", "integer": "^[0-9]{1,15}$"}


class UploadRoute(ApiRoute):
    """A route whose refusals say what the draft wants of them."""

    def get_route_handler(self) -> Handler:
        """The handler of a request."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Answer:
            try:
                return await handler(request)
            except FragdexError as error:
                if not isinstance(error, UNREAD):
                    await drain(request.stream())
                response = problem_of(error)
                context: ServiceContext = request.app.state.context
                if isinstance(error, UploadOffsetMismatch):
                    response.headers["Upload-Offset"] = str(error.more["expected-offset"])
                elif isinstance(error, TooLarge):
                    most = None if isinstance(error, QuotaExceeded) else error.more.get("limit")
                    response.headers["Upload-Limit"] = limits_of(context, most)
                elif isinstance(error, UnsupportedMediaType):
                    response.headers["Accept-Patch"] = CONTENT_TYPE
                elif isinstance(error, UploadBusy):
                    response.headers["Connection"] = "close"
                response.headers.update(request.scope.get(STATE, {}))
                return response

        return handle


def _field(name: str, type_: str, description: str, *, required: bool = False) -> dict[str, Any]:
    schema = {"type": "string", "pattern": PATTERNS[type_]}
    parameter = {"name": name, "in": "header", "required": required, "description": description}
    return {**parameter, "schema": schema, "example": "?1" if type_ == "boolean" else "0"}


def body_of(media_type: str) -> dict[str, Any]:
    """What the document says about a body of bytes."""
    schema = {"type": "string", "format": "binary"}
    return {"required": True, "content": {media_type: {"schema": schema}}}


COMPLETE: Final = _field(
    "Upload-Complete", "boolean", "`?1`: the upload ends with this body; `?0`: more follow",
    required=True,
)  # fmt: skip
LENGTH: Final = _field(
    "Upload-Length",
    "integer",
    "bytes of the whole, where they are known; `?1` and Content-Length say it too",
)
OFFSET: Final = _field("Upload-Offset", "integer", "of the first byte of this body", required=True)
OK: Final[dict[int | str, dict[str, Any]]] = {
    201: {"model": AnyFile, "description": "The file. `Upload-Complete: ?1`: its bytes are "
          "complete, else `Location` is the URL of the upload"},
}  # fmt: skip
REFUSALS: Final = (
    RecordNotFound, UploadOffsetMismatch, UploadBusy, UploadGap, UploadCompleted,
    UploadLengthMismatch, Unprocessable, ChecksumMismatch, TooLarge,
)  # fmt: skip


def state_of(context: ServiceContext, upload: ResumableUpload) -> dict[str, str]:
    """The fields that say how far an upload is."""
    return {
        "Upload-Complete": item(upload.marked),
        "Upload-Offset": item(upload.next_byte),
        "Upload-Limit": limits_of(context, upload=upload),
    }


def limits_of(
    context: ServiceContext, most: int | None = None, *, upload: ResumableUpload | None = None
) -> str:
    """`Upload-Limit`."""
    age = None
    if upload is not None:
        most = upload.target.limit
        if upload.expires_at is not None:
            left = upload.expires_at.astimezone(UTC) - instant()
            age = max(0, int(left.total_seconds()))
    return limits(max_size=most or context.settings.max_unprocessed_bytes, max_age=age)


PATH: Final = "/uploads"


router = api_router("resumable uploads", UploadRoute)


@router.options(PATH, include_in_schema=False, response_class=Response)
@router.options(f"{PATH}/{{id}}", include_in_schema=False, response_class=Response)
def get_upload_abilities(context: InContext) -> Response:
    """Which limits there are, and that appending is supported."""
    return Response(
        status_code=204, headers={"Accept-Patch": CONTENT_TYPE, "Upload-Limit": limits_of(context)}
    )


@router.post(
    PATH,
    response_class=Response,
    status_code=201,
    responses={**answers(*REFUSALS), **OK},
    openapi_extra={
        "parameters": [COMPLETE, LENGTH],
        "requestBody": body_of("application/octet-stream"),
    },
)
async def create_upload(request: Request, caller: Asking, context: InContext) -> Response:
    """Begin a resumable upload (draft-ietf-httpbis-resumable-upload), with all or some bytes.

    The name of the file is that of `Content-Disposition`, its type `Content-Type`; a `Repr-Digest`
    of md5 finds a file that is here already.
    """
    complete, tenant_id = _completeness(request), caller.tenant_id
    length = _length(request, 0, complete)
    sent = request.headers
    known = {"filename": filename_of(sent.get("content-disposition")) or "upload"}
    type_ = sent.get("content-type", "").partition(";")[0].strip().lower()
    if type_ not in ("", "application/octet-stream"):
        known["filetype"] = type_
    if (md5 := md5_of(sent.get("repr-digest"))) is not None:
        known["md5"] = md5
    begun = partial(operations.begin, metadata=None)
    upload_id = await run_by_records(context, lambda c: begun(c, tenant_id, length, known))
    await running_of(request).supersede(upload_id)
    upload = await run_sync(operations.find, context, tenant_id, upload_id)
    place, limit = f"{PREFIX}{PATH}/{upload.id}", limits_of(context, upload=upload)
    announce(request, {"Location": public_path(place), "Upload-Limit": limit})
    if not upload.is_here:
        upload = await _appended(request, context, tenant_id, upload, 0, complete, length)
    else:
        await drain(request.stream())  # it is here already
        upload = await _ended(context, tenant_id, upload, complete)
    if complete:
        return await _final(context, tenant_id, upload)
    headers = {"Location": place, **state_of(context, upload)}
    return await _record(context, tenant_id, upload, headers)


@router.head(
    f"{PATH}/{{id}}",
    status_code=204,
    response_class=Response,
    responses=answers(RecordNotFound, UploadBusy),
)
async def head_upload(
    id: RecordId, request: Request, caller: Asking, context: InContext
) -> Response:
    """The state of a resumable upload, in the header fields."""
    upload = await _alone(request, context, caller.tenant_id, id)
    headers = {"Cache-Control": "no-store", **state_of(context, upload)}
    if upload.byte_size is not None:
        headers["Upload-Length"] = item(upload.byte_size)
    return Response(status_code=204, headers=headers)


@router.patch(
    f"{PATH}/{{id}}",
    response_class=Response,
    status_code=201,
    responses={
        **answers(*REFUSALS, UnsupportedMediaType),
        **OK,
        204: {"description": "The bytes were appended; more follow"},
    },
    openapi_extra={"parameters": [OFFSET, COMPLETE, LENGTH], "requestBody": body_of(CONTENT_TYPE)},
)
async def append_upload(
    id: RecordId, request: Request, caller: Asking, context: InContext
) -> Response:
    """Append the next bytes to a resumable upload."""
    upload = await _alone(request, context, caller.tenant_id, id)
    need_content_type(request, CONTENT_TYPE)
    complete, offset = _completeness(request), integer(_text(request, "upload-offset"))
    if offset is None:
        raise InvalidRequest("Upload-Offset is needed", header="Upload-Offset")
    _need_open(request, upload)
    if offset != upload.next_byte:
        raise UploadOffsetMismatch(
            "the upload is at another byte",
            more={"expected-offset": upload.next_byte, "provided-offset": offset},
        )
    length = _length(request, offset, complete)
    if upload.byte_size is not None and length not in (None, upload.byte_size):
        raise UploadLengthMismatch(
            "the upload has another length", expected=upload.byte_size, found=length
        )
    upload = await _appended(request, context, caller.tenant_id, upload, offset, complete, length)
    if complete:
        return await _final(context, caller.tenant_id, upload)
    return Response(status_code=204, headers=state_of(context, upload))


@router.delete(f"{PATH}/{{id}}", status_code=204, responses=answers(RecordNotFound, UploadBusy))
async def cancel_upload(id: RecordId, request: Request, caller: Asking, context: InContext) -> None:
    """Cancel a resumable upload and delete its bytes, or the file that it has become."""
    await _alone(request, context, caller.tenant_id, id)
    await run_sync(operations.end, context, caller.tenant_id, id)


async def _alone(
    request: Request, context: ServiceContext, tenant_id: str, upload_id: str
) -> ResumableUpload:
    """An upload that no other request writes, by what it looks like from here.

    The upload is this tenant's before another request is ended.
    """
    upload = await run_sync(operations.find, context, tenant_id, upload_id)
    if upload.target.family == operations.FAMILY:
        raise RecordNotFound(
            "this is a part of an upload by tus, and becomes no file by itself",
            advice="continue it at /tus",
        )
    await running_of(request).supersede(upload_id)
    return await run_sync(operations.find, context, tenant_id, upload_id)


def _text(request: Request, name: str) -> str | None:
    # a field in several lines is one (RFC 9651, 4.2)
    return ", ".join(request.headers.getlist(name)) or None


def _completeness(request: Request) -> bool:
    complete = boolean(_text(request, "upload-complete"))
    if complete is None:
        raise InvalidRequest(
            "Upload-Complete is needed", header="Upload-Complete", expected="?0 or ?1"
        )
    return complete


def _length(request: Request, offset: int, complete: bool) -> int | None:
    """The length of the whole that a request tells, in one way or two."""
    length = integer(_text(request, "upload-length"))
    sent = content_length(request)
    if complete and sent is not None:
        whole = offset + sent
        if length not in (None, whole):
            raise UploadLengthMismatch(
                "Upload-Length is not what Content-Length says", expected=whole, found=length
            )
        return whole
    return length


def _need_open(request: Request, upload: ResumableUpload) -> None:
    if not upload.marked:
        return
    if content_length(request) != 0:
        raise UploadLengthMismatch("the upload is complete; there are bytes after its end")
    raise UploadCompleted("the upload is complete", more={"file": upload.id})


async def _appended(
    request: Request,
    context: ServiceContext,
    tenant_id: str,
    upload: ResumableUpload,
    offset: int,
    complete: bool,
    length: int | None,
) -> ResumableUpload:
    """The upload with the content of a request; it is deleted where it can never be completed."""
    sent = content_length(request) or 0
    whole = length if upload.byte_size is None else upload.byte_size
    if whole is not None and offset + sent > whole:
        raise UploadLengthMismatch(
            "the bytes pass the length of the upload",
            expected=f"at most {whole - offset} bytes",
            found=sent,
        )
    digest = content_digest(_text(request, "content-digest"))
    if digest is not None:  # the content is held until all of it is right
        largest = context.settings.max_chunk_bytes
        request.scope[STATE] = {"Upload-Limit": limits(max_append_size=largest)}
    try:
        with running_of(request).alone(upload.id) as running:
            async with reporting_progress(request, context, tenant_id, upload):
                after = await append(
                    request, context, tenant_id, upload, offset, digest,
                    total=length, is_last=complete, watched=running.until_ended,
                )  # fmt: skip
    except FragdexError as error:
        await _give_up(request, context, tenant_id, upload, error)
        raise
    return await _ended(context, tenant_id, after, complete)


async def _give_up(
    request: Request,
    context: ServiceContext,
    tenant_id: str,
    upload: ResumableUpload,
    error: FragdexError,
) -> None:
    """Delete an upload whose bytes were let go: its offset may never decrease.

    Raises:
        UploadLengthMismatch: the bytes passed the length.
    """
    after = await run_sync(operations.find, context, tenant_id, upload.id)
    refused = row_of(type(error)).status == 422
    if not refused and after.next_byte >= upload.next_byte:
        return
    if upload.expires_at is not None:  # it was begun here, and by nothing else
        await run_sync(operations.end, context, tenant_id, upload.id)
    if isinstance(error, Unprocessable) and "byte_size" in error.more:
        raise UploadLengthMismatch(
            "the bytes pass the length of the upload", expected=upload.byte_size, found="more"
        ) from error
    if refused:  # all bytes came, and are not what they were announced as
        request.scope[STATE] = {"Upload-Complete": item(True)}


async def _ended(
    context: ServiceContext, tenant_id: str, upload: ResumableUpload, complete: bool
) -> ResumableUpload:
    if not complete:
        return upload
    if not upload.is_here:
        raise UploadLengthMismatch(
            "the upload ends before its length", expected=upload.byte_size, found=upload.next_byte
        )
    await run_sync(operations.mark_complete, context, tenant_id, upload.id)
    return upload


async def _final(context: ServiceContext, tenant_id: str, upload: ResumableUpload) -> Response:
    """What is answered where an upload was completed: the file."""
    headers = {
        "Location": f"{PREFIX}/files/{upload.id}",
        "Upload-Complete": item(True),
        "Upload-Offset": item(upload.next_byte),
    }
    return await _record(context, tenant_id, upload, headers)


async def _record(
    context: ServiceContext, tenant_id: str, upload: ResumableUpload, headers: dict[str, str]
) -> Response:
    record = await run_by_records(context, lambda c: files.file_by_id(c, tenant_id, upload.id))
    return Response(record.model_dump_json(), 201, headers, media_type="application/json")
