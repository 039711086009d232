"""Tracks of ISOBMFF files over HTTP: announced, sent in chunks, read by ranges."""

from __future__ import annotations

import re
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import Depends, Path, Query, Request, Response

from fragdex.service.context import ServiceContext
from fragdex.service.errors import Conflict, NotReady, RecordNotFound, TooLarge
from fragdex.service.isobmff import tracks
from fragdex.service.isobmff.model import MAX_TRACK_ID, NewTrack, TrackList, TrackRecord
from fragdex.service.isobmff.router import router
from fragdex.service.uploads.requests import BODY, REFUSALS, receive_request
from fragdex.service.web.auth import Asking, InContext
from fragdex.service.web.fields import record_id
from fragdex.service.web.idempotency import idempotency_key
from fragdex.service.web.problems import answers
from fragdex.service.web.ranges import media_answers, media_of
from fragdex.service.web.routing import PREFIX, with_fast_path

__all__ = [
    "TrackFile",
    "TrackNumber",
    "receive_track",
    "router",
    "sent_track",
    "track_media",
]

KNOWN: dict[int | str, dict[str, Any]] = {
    200: {"model": TrackRecord, "description": "It is announced already"}
}
MISSING: dict[int | str, dict[str, Any]] = {
    202: {"model": TrackRecord, "description": "Bytes are missing"}
}
NOT_FOUND = answers(RecordNotFound)
MEDIA = {
    **answers(RecordNotFound, NotReady),
    **media_answers("video/mp4", "audio/mp4", "application/mp4"),
}
TRACK = "/isobmff_tracks/{file_id}/{track_id}"

_NUMBER = re.compile(r"-1|0|[1-9][0-9]{0,9}", re.ASCII)


async def _file_id(
    caller: Asking,
    file_id: Annotated[str, Path(description="as the service gave it")],
) -> str:
    return record_id(file_id)


async def _asked_file(
    caller: Asking,
    file_id: Annotated[str, Query(description="of which file")],
) -> str:
    return record_id(file_id)


async def track_number(
    caller: Asking,  # who has no key learns nothing
    track_id: Annotated[str, Path(description="track_ID; -1: the scrub track", examples=["1"])],
) -> int:
    """The `track_id` of a path; what is no number is of no track."""
    return _number(track_id)


async def track_file(
    caller: Asking,
    track_id: Annotated[
        str, Path(description="track_ID; -1: the scrub track; `.mp4` may follow", examples=["1"])
    ],
) -> int:
    """The same where the bytes are: some players look at how an address ends."""
    return _number(track_id.removesuffix(".mp4"))


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text) or int(text) > MAX_TRACK_ID:
        raise RecordNotFound("there is no such track")
    return int(text)


FileId = Annotated[str, Depends(_file_id)]
TrackNumber = Annotated[int, Depends(track_number)]
TrackFile = Annotated[int, Depends(track_file)]


@router.post(
    "/isobmff_tracks",
    status_code=201,
    responses={**answers(RecordNotFound, TooLarge, Conflict), **KNOWN},
    dependencies=[Depends(idempotency_key)],
)
def create_isobmff_track(
    new: NewTrack, response: Response, caller: Asking, context: InContext
) -> TrackRecord:
    """Announce the bytes of a track; they follow by upload."""
    record, is_new = tracks.create_track(context, caller.tenant_id, new)
    if not is_new:
        response.status_code = 200
    place = f"{PREFIX}/isobmff_tracks/{record.file_id}/{record.track_id}"
    response.headers["Location"] = place
    return record


@router.get("/isobmff_tracks", responses=NOT_FOUND)
def list_isobmff_tracks(
    caller: Asking,
    context: InContext,
    file_id: Annotated[str, Depends(_asked_file)],
) -> TrackList:
    """The tracks of a file whose bytes are announced, by their ids."""
    return tracks.list_tracks(context, caller.tenant_id, file_id)


@router.post(
    TRACK + "/upload",
    status_code=201,
    responses={**answers(*REFUSALS), **MISSING},
    openapi_extra=BODY,
)
async def upload_isobmff_track(
    file_id: FileId,
    track_id: TrackNumber,
    request: Request,
    response: Response,
    caller: Asking,
    context: InContext,
) -> TrackRecord:
    """Send bytes of a track, whole or in chunks; 202 while some are missing."""
    return await receive_track(request, response, context, caller.tenant_id, file_id, track_id)


async def receive_track(
    request: Request,
    response: Response,
    context: InContext,
    tenant_id: str,
    file_id: str,
    track_id: int,
) -> TrackRecord:
    """The answer to POST of bytes of a track."""
    progress = await receive_request(
        request,
        tenant_id,
        tracks.FAMILY,
        tracks.track_name(file_id, track_id),
        tracks.ARRIVAL,
        context.settings.max_track_bytes,
    )
    response.status_code = 201 if progress.complete else 202
    return await run_sync(tracks.track_by_id, context, tenant_id, file_id, track_id)


@router.get(TRACK + "/upload", responses=NOT_FOUND)
def get_isobmff_track_upload(
    file_id: FileId, track_id: TrackNumber, caller: Asking, context: InContext
) -> TrackRecord:
    """A track whose bytes are all here; else 404 with `next_byte`."""
    return sent_track(context, caller.tenant_id, file_id, track_id)


def sent_track(context: InContext, tenant_id: str, file_id: str, track_id: int) -> TrackRecord:
    """The answer to GET of the upload of a track."""
    record = tracks.track_by_id(context, tenant_id, file_id, track_id)
    if not record.complete:
        raise RecordNotFound(
            "bytes of this upload are missing",
            more={"next_byte": record.next_byte, "byte_size": record.byte_size},
        )
    return record


def _media_at_once(request: Request, context: ServiceContext, tenant_id: str) -> Response:
    asked = request.path_params
    file_id, track_id = record_id(asked["file_id"]), _number(asked["track_id"].removesuffix(".mp4"))
    return track_media(request, context, tenant_id, file_id, track_id)


@router.get(TRACK, response_class=Response, responses=MEDIA)
@router.head(TRACK, response_class=Response, responses=MEDIA)
@with_fast_path(_media_at_once)
def download_isobmff_track(
    file_id: FileId, track_id: TrackFile, request: Request, caller: Asking, context: InContext
) -> Response:
    """The bytes of a track, whole or by ranges."""
    return track_media(request, context, caller.tenant_id, file_id, track_id)


def track_media(
    request: Request, context: ServiceContext, tenant_id: str, file_id: str, track_id: int
) -> Response:
    """The answer to GET or HEAD of the bytes of a track."""
    return media_of(request, tracks.track_bytes(context, tenant_id, file_id, track_id))


@router.delete(TRACK, status_code=204, responses=NOT_FOUND)
def delete_isobmff_track(
    file_id: FileId, track_id: TrackNumber, caller: Asking, context: InContext
) -> None:
    """Delete a track and its bytes."""
    tracks.delete_track(context, caller.tenant_id, file_id, track_id)
