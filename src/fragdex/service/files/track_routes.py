"""Tracks and indexes of videos over HTTP, below the files they belong to."""

from __future__ import annotations

from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import Depends, Query, Request, Response

from fragdex.errors import (
    Conflict,
    IndexMismatch,
    RecordNotFound,
    RequestTimedOut,
    TooLarge,
    Unprocessable,
)
from fragdex.service.files.operations import isobmff_id
from fragdex.service.isobmff import forms, indexing, tracks
from fragdex.service.isobmff.index_routes import BODY, FORM_ANSWERS, TrackId, index_answer
from fragdex.service.isobmff.model import (
    FileRecord,
    NewTrack,
    TrackFacts,
    TrackList,
    TrackRecord,
)
from fragdex.service.isobmff.track_routes import CREATION, NOT_FOUND, announced, track_routes
from fragdex.service.web.auth import Asking, InContext
from fragdex.service.web.bodies import in_thread
from fragdex.service.web.fields import RecordId
from fragdex.service.web.idempotency import idempotency_key
from fragdex.service.web.problems import answers
from fragdex.service.web.routing import api_router

__all__ = ["router"]

router = api_router("files")

TRACKS = "/files/{id}/tracks"


async def _file_id(caller: Asking, id: RecordId) -> str:
    return id


@router.post(
    TRACKS,
    status_code=201,
    responses=CREATION,
    dependencies=[Depends(idempotency_key)],
)
def create_file_track(
    id: RecordId, new: TrackFacts, response: Response, caller: Asking, context: InContext
) -> TrackRecord:
    """Announce a track of a video whose bytes are a file of its own; they follow by upload."""
    made = isobmff_id(context, caller.tenant_id, id, make=True)
    track = NewTrack(file_id=made, **new.model_dump())
    return announced(context, caller.tenant_id, track, response, TRACKS.format(id=id))


@router.get(TRACKS, responses=NOT_FOUND)
def list_file_tracks(id: RecordId, caller: Asking, context: InContext) -> TrackList:
    """The tracks of a video whose bytes are announced, by their ids."""
    made = isobmff_id(context, caller.tenant_id, id)
    return tracks.list_tracks(context, caller.tenant_id, made)


track_routes(router, TRACKS, "file_track", Annotated[str, Depends(_file_id)], isobmff_id)


@router.post(
    "/files/{id}/index/upload",
    status_code=201,
    responses=answers(
        RecordNotFound, Conflict, Unprocessable, IndexMismatch, TooLarge, RequestTimedOut
    ),
    openapi_extra=BODY,
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
