"""tus 1.0.0 over HTTP: core, and the extensions that `protocol.EXTENSIONS` names."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from anyio.to_thread import run_sync
from fastapi import Request, Response
from starlette.responses import Response as Answer

from fragdex.errors import (
    FragdexError,
    InvalidRequest,
    TooLarge,
    UnsupportedMediaType,
    UnsupportedVersion,
    UploadGap,
)
from fragdex.service.context import ServiceContext
from fragdex.service.tus import operations
from fragdex.service.tus.appending import append
from fragdex.service.tus.operations import ResumableUpload
from fragdex.service.tus.protocol import (
    CHECKSUMS,
    CONTENT_TYPE,
    EXTENSIONS,
    VERSION,
    http_date,
    parse_checksum,
    parse_concat,
    parse_metadata,
    parse_number,
)
from fragdex.service.uploads.receiving import drain
from fragdex.service.web.auth import Asking, InContext
from fragdex.service.web.fields import RecordId
from fragdex.service.web.problems import problem_of
from fragdex.service.web.routing import PREFIX, ApiRoute, Handler, api_router

PATH: Final = "/tus"


class TusRoute(ApiRoute):
    """A route that speaks the protocol's version in every answer, refusals included."""

    def get_route_handler(self) -> Handler:
        """The handler of a request."""
        handler = super().get_route_handler()

        async def spoken(request: Request) -> Answer:
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

        return spoken


router = api_router("tus", TusRoute)
hidden: dict[str, Any] = {"include_in_schema": False, "response_class": Response}
"""The protocol is its own document; OpenAPI has no words for it."""


def _need_version(request: Request) -> None:
    found = request.headers.get("tus-resumable")
    if found != VERSION:
        raise UnsupportedVersion(
            "this version of tus is not spoken here", expected=VERSION, found=found
        )


@router.options(PATH, **hidden)
def get_tus_abilities(context: InContext) -> Response:
    """What of the protocol is spoken here."""
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
        made = await run_sync(
            partial(operations.concatenate, metadata=metadata, concat=concat or ""),
            context, tenant_id, wanted, known,
        )  # fmt: skip
    else:
        if "upload-defer-length" in sent:
            raise InvalidRequest(
                "Upload-Length is needed at the beginning", pointer="Upload-Defer-Length"
            )
        size = parse_number("Upload-Length", sent.get("upload-length"))
        if wanted is not None:
            begun = partial(operations.begin_part, metadata=metadata)
            made = await run_sync(begun, context, tenant_id, size)
        else:
            begun = partial(operations.begin, metadata=metadata)
            made = await run_sync(begun, context, tenant_id, size, known)
    upload = await run_sync(operations.find, context, tenant_id, made)
    if upload.next_byte < upload.byte_size and _has_bytes(request) and upload.next_byte == 0:
        upload = await _receive(request, context, tenant_id, upload, 0)
    location = f"{PREFIX}{PATH}/{upload.id}"
    return Response(status_code=201, headers={"Location": location, **_headers(upload)})


@router.head(f"{PATH}/{{id}}", **hidden)
def head_tus_upload(id: RecordId, caller: Asking, context: InContext) -> Response:
    """How far an upload is."""
    upload = operations.find(context, caller.tenant_id, id)
    headers = {"Cache-Control": "no-store", "Upload-Length": str(upload.byte_size)}
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
    _need_content_type(request)
    offset = parse_number("Upload-Offset", request.headers.get("upload-offset"))
    upload = await run_sync(operations.find, context, caller.tenant_id, id)
    upload = await _receive(request, context, caller.tenant_id, upload, offset)
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
        pointer="X-HTTP-Method-Override",
    )


def _headers(upload: ResumableUpload) -> dict[str, str]:
    headers = {"Upload-Offset": str(upload.next_byte)}
    if upload.expires_at is not None:
        headers["Upload-Expires"] = http_date(upload.expires_at)
    return headers


def _has_bytes(request: Request) -> bool:
    if request.headers.get("content-length", "0") == "0":
        return "transfer-encoding" in request.headers
    _need_content_type(request)
    return True


def _need_content_type(request: Request) -> None:
    found = request.headers.get("content-type", "").partition(";")[0].strip()
    if found != CONTENT_TYPE:
        raise UnsupportedMediaType(
            "bytes of an upload have a type of their own", expected=CONTENT_TYPE, found=found
        )


async def _receive(
    request: Request, context: ServiceContext, tenant_id: str, upload: ResumableUpload, offset: int
) -> ResumableUpload:
    if offset != upload.next_byte:
        await drain(request.stream())
        raise UploadGap(
            "the upload is at another byte",
            more={"next_byte": upload.next_byte},
            expected=upload.next_byte,
            found=offset,
        )
    sent = request.headers.get("content-length", "")
    if sent.isdecimal() and int(sent) > upload.byte_size - offset:
        await drain(request.stream())
        raise TooLarge(
            "the bytes pass the length of the upload", more={"limit": upload.byte_size - offset}
        )
    checksum = parse_checksum(request.headers.get("upload-checksum"))
    return await append(request, context, tenant_id, upload, offset, checksum)
