"""Tracks and indexes of videos over HTTP, below the files they belong to."""

from __future__ import annotations

from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import Depends, Query, Request, Response

from fragdex.errors import (
    IndexMismatch,
)
from fragdex.service.errors import (
    Conflict,
    NotReady,
    RecordNotFound,
    RequestTimedOut,
    TooLarge,
    Unprocessable,
)
from fragdex.service.files.operations import isobmff_id
from fragdex.service.isobmff import forms, indexing, tracks
from fragdex.service.isobmff.index_routes import BODY as INDEX_BODY
from fragdex.service.isobmff.index_routes import FORM_ANSWERS, TrackId, index_answer
from fragdex.service.isobmff.model import (
    FileRecord,
    NewTrack,
    TrackFacts,
    TrackList,
    TrackRecord,
)
from fragdex.service.isobmff.track_routes import (
    TrackFile,
    TrackNumber,
    receive_track,
    sent_track,
    track_media,
)
from fragdex.service.uploads.requests import BODY, REFUSALS
from fragdex.service.web.auth import Asking, InContext
from fragdex.service.web.bodies import in_thread
from fragdex.service.web.fields import RecordId
from fragdex.service.web.idempotency import idempotency_key
from fragdex.service.web.problems import answers
from fragdex.service.web.ranges import media_answers
from fragdex.service.web.routing import PREFIX, api_router

__all__ = ["router"]

router = api_router("files")

Answers = dict[int | str, dict[str, Any]]

KNOWN: Answers = {200: {"model": TrackRecord, "description": "It is announced already"}}
MISSING: Answers = {202: {"model": TrackRecord, "description": "Bytes are missing"}}
NOT_FOUND = answers(RecordNotFound)
MEDIA = {
    **answers(RecordNotFound, NotReady),
    **media_answers("video/mp4", "audio/mp4", "application/mp4"),
}
TRACK = "/files/{id}/tracks/{track_id}"


@router.post(
    "/files/{id}/tracks",
    status_code=201,
    responses={**answers(RecordNotFound, TooLarge, Conflict), **KNOWN},
    dependencies=[Depends(idempotency_key)],
)
def create_file_track(
    id: RecordId, new: TrackFacts, response: Response, caller: Asking, context: InContext
) -> TrackRecord:
    """Announce a track of a video whose bytes are a file of its own; they follow by upload."""
    made = isobmff_id(context, caller.tenant_id, id, make=True)
    track = NewTrack(file_id=made, **new.model_dump())
    record, is_new = tracks.create_track(context, caller.tenant_id, track)
    if not is_new:
        response.status_code = 200
    response.headers["Location"] = f"{PREFIX}/files/{id}/tracks/{record.track_id}"
    return record


@router.get("/files/{id}/tracks", responses=NOT_FOUND)
def list_file_tracks(id: RecordId, caller: Asking, context: InContext) -> TrackList:
    """The tracks of a video whose bytes are announced, by their ids."""
    made = isobmff_id(context, caller.tenant_id, id)
    return tracks.list_tracks(context, caller.tenant_id, made)


@router.post(
    TRACK + "/upload",
    status_code=201,
    responses={**answers(*REFUSALS), **MISSING},
    openapi_extra=BODY,
)
async def upload_file_track(
    id: RecordId,
    track_id: TrackNumber,
    request: Request,
    response: Response,
    caller: Asking,
    context: InContext,
) -> TrackRecord:
    """Send bytes of a track, whole or in chunks; 202 while some are missing."""
    made = await run_sync(isobmff_id, context, caller.tenant_id, id)
    return await receive_track(request, response, context, caller.tenant_id, made, track_id)


@router.get(TRACK + "/upload", responses=NOT_FOUND)
def get_file_track_upload(
    id: RecordId, track_id: TrackNumber, caller: Asking, context: InContext
) -> TrackRecord:
    """A track whose bytes are all here; else 404 with `next_byte`."""
    made = isobmff_id(context, caller.tenant_id, id)
    return sent_track(context, caller.tenant_id, made, track_id)


@router.get(TRACK, response_class=Response, responses=MEDIA)
@router.head(TRACK, response_class=Response, responses=MEDIA)
def download_file_track(
    id: RecordId, track_id: TrackFile, request: Request, caller: Asking, context: InContext
) -> Response:
    """The bytes of a track, whole or by ranges."""
    made = isobmff_id(context, caller.tenant_id, id)
    return track_media(request, context, caller.tenant_id, made, track_id)


@router.delete(TRACK, status_code=204, responses=NOT_FOUND)
def delete_file_track(
    id: RecordId, track_id: TrackNumber, caller: Asking, context: InContext
) -> None:
    """Delete a track and its bytes."""
    made = isobmff_id(context, caller.tenant_id, id)
    tracks.delete_track(context, caller.tenant_id, made, track_id)


@router.post(
    "/files/{id}/index/upload",
    status_code=201,
    responses=answers(
        RecordNotFound, Conflict, Unprocessable, IndexMismatch, TooLarge, RequestTimedOut
    ),
    openapi_extra=INDEX_BODY,
)
async def upload_file_index(
    id: RecordId, request: Request, caller: Asking, context: InContext
) -> FileRecord:
    """Send the index of a video; the one before it stays unless all of this one holds."""
    made = await run_sync(lambda: isobmff_id(context, caller.tenant_id, id, make=True))
    return await in_thread(
        request,
        context.settings.max_index_bytes,
        lambda pieces: indexing.receive_index(context, caller.tenant_id, made, pieces),
    )


@router.get(
    "/files/{id}/index",
    response_class=Response,
    responses=FORM_ANSWERS,
)
def get_file_index(
    id: RecordId,
    request: Request,
    caller: Asking,
    context: InContext,
    format: Annotated[forms.IndexForm | None, Query(description="instead of Accept")] = None,
    track: TrackId = None,
) -> Response:
    """The index of a video, in the form that `format` or Accept names; `track` for sidx and hls.

    An `hls` without `track` is a multivariant playlist where several tracks are files of their own.
    """
    made = isobmff_id(context, caller.tenant_id, id)
    return index_answer(
        request, context, caller.tenant_id, made, format, track, tracks_at="tracks/{track_id}.mp4"
    )
