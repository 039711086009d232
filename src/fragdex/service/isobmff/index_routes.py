"""The index of an ISOBMFF file over HTTP: sent, answered in many forms, asked for a moment."""

from __future__ import annotations

from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import Query, Request, Response

from fragdex.errors import (
    BuildError,
    DamagedIndex,
    IndexMismatch,
    InexactIndex,
    MissingExtra,
    NoSyncSample,
    SourceNotFound,
    TrackNotFound,
)
from fragdex.formats import FORMS as ALL_FORMS
from fragdex.service.errors import (
    InvalidRequest,
    NotAcceptable,
    RecordNotFound,
    RequestTimedOut,
    TooLarge,
    Unprocessable,
)
from fragdex.service.isobmff import indexing, opened, operations, seeking
from fragdex.service.isobmff.model import FileRecord, SeekAnswer
from fragdex.service.isobmff.router import router
from fragdex.service.web.auth import Asking, InHouse
from fragdex.service.web.bodies import in_thread
from fragdex.service.web.fields import RecordId
from fragdex.service.web.negotiation import chosen, etag_of, has_already
from fragdex.service.web.problems import answers

__all__ = ["MEDIA_TYPES", "index_answer", "router"]

MEDIA_TYPES: dict[opened.FormName, str] = {
    form: ALL_FORMS[form].media_type for form in opened.FORMS
}
BINARY = {"schema": {"type": "string", "format": "binary"}}
BODY: dict[str, Any] = {
    "requestBody": {
        "description": "the index as JSON, or as `.fidx`; whatever Content-Type says",
        "required": True,
        "content": {
            "application/json": {"schema": {"type": "object", "additionalProperties": True}},
            MEDIA_TYPES["fidx"]: BINARY,
        },
    },
}
FORM_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The index",
        "content": {
            "application/json": {"schema": {"type": "object", "additionalProperties": True}},
            MEDIA_TYPES["hls"]: {"schema": {"type": "string"}},
            **{MEDIA_TYPES[form]: BINARY for form in ("fidx", "arrow", "sidx")},
        },
    },
    304: {"description": "The caller has it already"},
}
TrackId = Annotated[
    int | None,
    Query(
        ge=-1,
        le=2**32,
        description="default: the first video track, or else the first audio track",
    ),
]
Milliseconds = Annotated[float, Query(ge=-1e15, le=1e15, allow_inf_nan=False)]


@router.post(
    "/isobmff_files/{id}/index/upload",
    status_code=201,
    responses=answers(RecordNotFound, Unprocessable, IndexMismatch, TooLarge, RequestTimedOut),
    openapi_extra=BODY,
)
async def upload_index(
    id: RecordId, request: Request, caller: Asking, house: InHouse
) -> FileRecord:
    """Send the index of a file; the one before it stays unless all of this one holds."""
    return await in_thread(
        request,
        house.settings.max_index_bytes,
        lambda pieces: indexing.receive_index(house, caller.tenant_id, id, pieces),
    )


@router.get(
    "/isobmff_files/{id}/index",
    response_class=Response,
    responses={
        **answers(
            RecordNotFound, TrackNotFound, SourceNotFound, NotAcceptable, InexactIndex, BuildError,
            DamagedIndex, MissingExtra,
        ),
        **FORM_ANSWERS,
    },
)  # fmt: skip
def get_index(
    id: RecordId,
    request: Request,
    caller: Asking,
    house: InHouse,
    format: Annotated[opened.FormName | None, Query(description="instead of Accept")] = None,
    track: TrackId = None,
) -> Response:
    """The index of a file, in the form that `format` or Accept names; `track` for sidx and hls."""
    return index_answer(request, house, caller.tenant_id, id, format, track)


def index_answer(
    request: Request,
    house: InHouse,
    tenant_id: str,
    file_id: str,
    form: opened.FormName | None = None,
    track_id: int | None = None,
    tracks_at: str = "../../isobmff_tracks/{file_id}/{track_id}",
) -> Response:
    """The index of a file as it is asked for.

    Args:
        tracks_at: where the bytes of a track are, seen from this answer; for playlists.
    """
    keys = operations.index_keys(house, tenant_id, file_id)
    form = form or _accepted(request.headers.get("accept"))
    uri = None
    if form in ("sidx", "hls"):
        track_id = opened.chosen_track(opened.opened(house, keys).index, track_id).id
        uri = tracks_at.format(file_id=file_id, track_id=track_id)
    else:
        track_id = None
    etag = etag_of(opened.etag_md5(keys), form if track_id is None else f"{form}{track_id}")
    headers = {"ETag": etag, "Vary": "Accept", "Cache-Control": "private, no-cache"}
    if has_already(request.headers, etag):
        return Response(status_code=304, headers=headers)
    content = opened.exported(house, keys, form, track_id, uri)
    return Response(content, media_type=MEDIA_TYPES[form], headers=headers)


def _accepted(accept: str | None) -> opened.FormName:
    wanted = chosen(accept, [*MEDIA_TYPES.values()])
    return next(form for form, media_type in MEDIA_TYPES.items() if media_type == wanted)


@router.get(
    "/isobmff_files/{id}/seek",
    response_model=SeekAnswer,
    responses=answers(RecordNotFound, TrackNotFound, SourceNotFound, InvalidRequest, NoSyncSample),
)
async def seek_moment(
    id: RecordId,
    caller: Asking,
    house: InHouse,
    time_ms: Milliseconds,
    track: TrackId = None,
    end_ms: Annotated[
        float | None,
        Query(ge=-1e15, le=1e15, allow_inf_nan=False, description="exclusive; asks for `ranges`"),
    ] = None,
) -> Response:
    """The bytes at which decoding starts for a moment of the presentation."""
    answer = None
    if end_ms is None:
        answer = seeking.glance(house, caller.tenant_id, id, track, time_ms)
    if answer is None:
        answer = await run_sync(seeking.seek, house, caller.tenant_id, id, track, time_ms, end_ms)
    # made once, and not once more to see whether it is what it is
    told = answer.model_dump_json(exclude_unset=True)
    return Response(told, media_type="application/json")
