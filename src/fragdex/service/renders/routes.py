"""Renders over HTTP."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Final

from anyio.to_thread import run_sync
from fastapi import Depends, Request, Response

from fragdex.errors import (
    Finished,
    FragdexError,
    InvalidRequest,
    NotReady,
    RecordNotFound,
    TooLarge,
)
from fragdex.service.config import Settings
from fragdex.service.context import ServiceContext
from fragdex.service.renders import operations
from fragdex.service.renders.model import (
    TYPES,
    NewRender,
    NewRenderBatch,
    RenderBatch,
    RenderList,
    RenderRecord,
    RenderStatus,
    suffix_of,
)
from fragdex.service.renders.records import FAMILY, RENDERS, progress
from fragdex.service.uploads.family import NOT_FOUND, Family
from fragdex.service.uploads.model import Progress
from fragdex.service.uploads.operations import receive
from fragdex.service.uploads.receiving import (
    BODY,
    REFUSALS,
    drain,
    ensure_complete,
    receive_request,
)
from fragdex.service.uploads.upload_session import announced
from fragdex.service.web.auth import Asking, InContext
from fragdex.service.web.bodies import content_length, in_thread
from fragdex.service.web.events import LastEventId, counted, event_answers, progress_of
from fragdex.service.web.fields import RecordId
from fragdex.service.web.idempotency import idempotency_key
from fragdex.service.web.problems import answers
from fragdex.service.web.ranges import media_answers, media_of
from fragdex.service.web.routing import PREFIX, ApiRoute, api_router, get_and_head
from fragdex.service.web.threads import asks_store, run_by_records

# A character of html may take so many bytes in JSON.
_ESCAPED: Final = 6
_PIECE: Final = 1 << 20


class RenderRoute(ApiRoute):
    """A route whose JSON may hold a page."""

    def body_limit(self, settings: Settings) -> int:
        """Bytes that a JSON body may have: the page, escaped, and the rest."""
        return settings.max_json_bytes + _ESCAPED * settings.max_html_bytes


router = api_router("renders", RenderRoute)
routes = Family(router, "/renders", "render")

NOTHING_SAID: Final = NewRender.model_construct()
"""The meaning of a request without a body."""


@router.post(
    "/renders",
    status_code=201,
    responses=answers(TooLarge),
    dependencies=[Depends(idempotency_key)],
)
@asks_store
def create_render(
    response: Response, caller: Asking, context: InContext, new: NewRender = NOTHING_SAID
) -> RenderRecord:
    """Render a page: `html`, or a site that is uploaded next.

    Always a new render, also where there is one of the same md5.
    """
    record = operations.create_render(context, caller.tenant_id, new)
    response.headers["Location"] = f"{PREFIX}/renders/{record.id}"
    return record


@router.post(
    "/renders/batch",
    status_code=201,
    responses=answers(TooLarge),
    dependencies=[Depends(idempotency_key)],
)
@asks_store
def create_render_batch(caller: Asking, context: InContext, new: NewRenderBatch) -> RenderBatch:
    """Render a page once for each row, with the row as `window.fragdex.data`.

    All of the renders are made, or none.
    """
    return RenderBatch(renders=operations.create_renders(context, caller.tenant_id, new))


routes.listing(RenderList, RenderStatus, RENDERS.page)
routes.by_md5(
    RenderRecord, operations.find_render, description="The newest render with this identifier."
)


@router.post(
    "/renders/{id}/upload",
    status_code=201,
    responses={
        **answers(Finished, *REFUSALS),
        202: {"model": RenderRecord, "description": "Bytes are missing"},
    },
    openapi_extra=BODY,
)
async def upload_render(
    id: RecordId, request: Request, response: Response, caller: Asking, context: InContext
) -> RenderRecord:
    """Send a site, packed as .tar.gz or .zip with index.html at its root, whole or in chunks.

    202 while bytes are missing; with the last one the render is queued.
    """
    tenant_id = caller.tenant_id
    try:
        size, start = _announced(request, context.settings)
        if size is not None:
            await run_by_records(
                context, lambda c: operations.open_upload(c, tenant_id, id, size, start)
            )
        else:
            await run_sync(RENDERS.get, context, tenant_id, id)
    except FragdexError:
        # many clients send all before they listen
        await drain(request.stream())
        raise
    if size is None:
        sent = await _receive_unmeasured(request, context, tenant_id, id)
    else:
        sent = await receive_request(request, tenant_id, operations.target(context, id))
    response.status_code = 201 if sent.complete else 202
    return await run_sync(RENDERS.get, context, tenant_id, id)


@router.get("/renders/{id}/upload", responses=NOT_FOUND)
def get_render_upload(id: RecordId, caller: Asking, context: InContext) -> RenderRecord:
    """The record, once its bytes are complete; before that 404, with `next_byte`."""
    ensure_complete(operations.upload_of(context, caller.tenant_id, id))
    return RENDERS.get(context, caller.tenant_id, id)


@router.get(
    "/renders/{id}/progress",
    response_class=Response,
    responses={
        **NOT_FOUND,
        **event_answers(
            "`size {size}` once the number of frames is known, `completion {count}` for frames "
            "that were finished since, then `complete` or `error`"
        ),
    },
)
def get_render_progress(
    id: RecordId, request: Request, caller: Asking, context: InContext, after: LastEventId = None
) -> Response:
    """The progress of a render as events; without `Last-Event-ID` from the beginning."""
    return progress_of(request, context, caller.tenant_id, id, after, progress, counted)


@router.post("/renders/{id}/cancel", responses=answers(RecordNotFound, Finished))
def cancel_render(id: RecordId, caller: Asking, context: InContext) -> RenderRecord:
    """Cancel a render; its browsers stop within seconds. 409 if it is complete or failed."""
    return operations.cancel_render(context, caller.tenant_id, id)


def _result(suffix: str) -> None:
    """GET and HEAD of the result under the suffix of its file."""
    types = dict.fromkeys(TYPES.values()) if suffix == "mp4" else (TYPES[suffix],)
    refused = answers(RecordNotFound, NotReady)

    @get_and_head(
        router,
        f"/renders/{{id}}.{suffix}",
        name=f"download_render_{suffix}",
        description="The result, with its own media type."
        if suffix == "mp4"
        else f"The result of a render that makes a .{suffix}.",
        responses={**refused, **media_answers(*types)},
    )
    def get(id: RecordId, request: Request, caller: Asking, context: InContext) -> Response:
        return media_of(request, operations.result_of(context, caller.tenant_id, id, suffix))


for _suffix in dict.fromkeys(map(suffix_of, TYPES)):
    _result(_suffix)

routes.record(RenderRecord, RENDERS.get, description="The record of a render.")
routes.deletion(
    operations.delete_render,
    description="Delete a render, its page, its result and its slices; stop it if it is running.",
)


def _announced(request: Request, settings: Settings) -> tuple[int | None, int]:
    """How many bytes a site has in all, and where those of this request begin.

    (None, 0): the request does not tell.
    """
    field = request.headers.get("content-range")
    if field is not None:
        chunk = announced(field, settings.max_chunk_bytes)
        if chunk.total is None or chunk.start == chunk.stop:
            raise InvalidRequest(
                "the total number of bytes is needed",
                header="Content-Range",
                expected="bytes START-END/TOTAL",
                found=repr(field),
            )
        return chunk.total, chunk.start
    return content_length(request), 0


async def _receive_unmeasured(
    request: Request, context: ServiceContext, tenant_id: str, render_id: str
) -> Progress:
    """Receive a whole body that comes without a Content-Length: it is counted first."""
    limit = context.settings.max_render_upload_bytes

    def take(pieces: Iterator[bytes]) -> Progress:
        with tempfile.TemporaryFile(dir=context.settings.data) as file:
            file.writelines(pieces)
            size = file.tell()
            file.seek(0)
            operations.open_upload(context, tenant_id, render_id, size, 0)
            return receive(
                context,
                tenant_id,
                FAMILY,
                render_id,
                None,
                iter(lambda: file.read(_PIECE), b""),
                length=size,
                arrival=operations.arrival(context),
            )

    return await in_thread(request, limit, take)
