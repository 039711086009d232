"""Tracks of ISOBMFF files over HTTP: announced, sent in chunks, read by ranges.

`track_routes` puts on a router what is done with one track; below `/files`, too, where videos have
tracks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Path, Query, Request, Response

from fragdex.errors import Conflict, NotReady, RecordNotFound, TooLarge
from fragdex.service.context import ServiceContext
from fragdex.service.isobmff import tracks
from fragdex.service.isobmff.model import MAX_TRACK_ID, NewTrack, TrackList, TrackRecord
from fragdex.service.isobmff.router import router
from fragdex.service.uploads.model import Target
from fragdex.service.uploads.receiving import BODY, REFUSALS, receive_request
from fragdex.service.web.auth import Asking, InContext
from fragdex.service.web.fields import record_id
from fragdex.service.web.idempotency import idempotency_key
from fragdex.service.web.problems import answers
from fragdex.service.web.ranges import media_answers, media_of
from fragdex.service.web.routing import PREFIX, get_and_head, with_fast_path

__all__ = ["CREATION", "NOT_FOUND", "OfFile", "announced", "router", "track_routes"]

Answers = dict[int | str, dict[str, Any]]

CREATION: Answers = {
    **answers(RecordNotFound, TooLarge, Conflict),
    200: {"model": TrackRecord, "description": "It is announced already"},
}
MISSING: Answers = {202: {"model": TrackRecord, "description": "Bytes are missing"}}
NOT_FOUND = answers(RecordNotFound)
MEDIA = {
    **answers(RecordNotFound, NotReady),
    **media_answers("video/mp4", "audio/mp4", "application/mp4"),
}

OfFile = Callable[[ServiceContext, str, str], str]
"""The id of the ISOBMFF file that a tenant's path names; raises RecordNotFound."""

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


async def _track_number(
    caller: Asking,  # who has no key learns nothing
    track_id: Annotated[str, Path(description="track_ID; -1: the scrub track", examples=["1"])],
) -> int:
    return _number(track_id)


async def _track_file(
    caller: Asking,
    track_id: Annotated[
        str, Path(description="track_ID; -1: the scrub track; `.mp4` may follow", examples=["1"])
    ],
) -> int:
    # some players look at how an address ends
    return _number(track_id.removesuffix(".mp4"))


def _number(text: str) -> int:
    """The `track_id` of a path; what is no number is of no track."""
    if not _NUMBER.fullmatch(text) or int(text) > MAX_TRACK_ID:
        raise RecordNotFound("there is no such track")
    return int(text)


TrackNumber = Annotated[int, Depends(_track_number)]
TrackFile = Annotated[int, Depends(_track_file)]


def announced(
    context: ServiceContext, tenant_id: str, new: NewTrack, response: Response, place: str
) -> TrackRecord:
    """The answer to POST of a new track; `place` is that of the tracks of its file."""
    record, is_new = tracks.create_track(context, tenant_id, new)
    if not is_new:
        response.status_code = 200
    response.headers["Location"] = f"{PREFIX}{place}/{record.track_id}"
    return record


def _itself(context: ServiceContext, tenant_id: str, file_id: str) -> str:
    return file_id


def track_routes(
    router: APIRouter, place: str, noun: str, file_id: Any, of_file: OfFile | None = None
) -> None:
    """The routes of one track: its upload, its bytes, its deletion.

    Args:
        place: of the tracks of a file, below the prefix.
        noun: what a track is called in the names of operations.
        file_id: the type of what `place` names, as the framework reads it.
        of_file: None: `place` names the ISOBMFF file itself.
    """
    own = of_file or _itself
    at = f"{place}/{{track_id}}"

    async def post(
        named: str,
        track_id: TrackNumber,
        request: Request,
        response: Response,
        caller: Asking,
        context: InContext,
    ) -> TrackRecord:
        tenant_id, limit = caller.tenant_id, context.settings.max_track_bytes
        found = await run_sync(own, context, tenant_id, named)
        name = tracks.track_name(found, track_id)
        target = Target(tracks.FAMILY, name, tracks.ARRIVAL, limit)
        progress = await receive_request(request, tenant_id, target)
        response.status_code = 201 if progress.complete else 202
        return await run_sync(tracks.track_by_id, context, tenant_id, found, track_id)

    def get(named: str, track_id: TrackNumber, caller: Asking, context: InContext) -> TrackRecord:
        found = own(context, caller.tenant_id, named)
        record = tracks.track_by_id(context, caller.tenant_id, found, track_id)
        if not record.complete:
            raise RecordNotFound(
                "bytes of this upload are missing",
                more={"next_byte": record.next_byte, "byte_size": record.byte_size},
            )
        return record

    def at_once(request: Request, context: ServiceContext, tenant_id: str) -> Response:
        asked = request.path_params
        track_id = _number(asked["track_id"].removesuffix(".mp4"))
        found = record_id(asked["file_id"])
        return media_of(request, tracks.track_bytes(context, tenant_id, found, track_id))

    def media(
        named: str, track_id: TrackFile, request: Request, caller: Asking, context: InContext
    ) -> Response:
        found = own(context, caller.tenant_id, named)
        return media_of(request, tracks.track_bytes(context, caller.tenant_id, found, track_id))

    def delete(named: str, track_id: TrackNumber, caller: Asking, context: InContext) -> None:
        found = own(context, caller.tenant_id, named)
        tracks.delete_track(context, caller.tenant_id, found, track_id)

    if of_file is None:  # to look another file up takes a transaction
        with_fast_path(at_once)(media)
    for endpoint in (post, get, media, delete):
        endpoint.__annotations__["named"] = file_id  # where the framework looks for it
    router.post(
        f"{at}/upload",
        name=f"upload_{noun}",
        description="Send bytes of a track, whole or in chunks; 202 while some are missing.",
        status_code=201,
        response_model=TrackRecord,
        responses={**answers(*REFUSALS), **MISSING},
        openapi_extra=BODY,
    )(post)
    router.get(
        f"{at}/upload",
        name=f"get_{noun}_upload",
        description="A track whose bytes are all here; else 404 with `next_byte`.",
        response_model=TrackRecord,
        responses=NOT_FOUND,
    )(get)
    get_and_head(
        router,
        at,
        name=f"download_{noun}",
        description="The bytes of a track, whole or by ranges.",
        responses=MEDIA,
    )(media)
    router.delete(
        at,
        name=f"delete_{noun}",
        description="Delete a track and its bytes.",
        status_code=204,
        responses=NOT_FOUND,
    )(delete)


@router.post(
    "/isobmff_tracks",
    status_code=201,
    responses=CREATION,
    dependencies=[Depends(idempotency_key)],
)
def create_isobmff_track(
    new: NewTrack, response: Response, caller: Asking, context: InContext
) -> TrackRecord:
    """Announce the bytes of a track; they follow by upload."""
    return announced(context, caller.tenant_id, new, response, f"/isobmff_tracks/{new.file_id}")


@router.get("/isobmff_tracks", responses=NOT_FOUND)
def list_isobmff_tracks(
    caller: Asking,
    context: InContext,
    file_id: Annotated[str, Depends(_asked_file)],
) -> TrackList:
    """The tracks of a file whose bytes are announced, by their ids."""
    return tracks.list_tracks(context, caller.tenant_id, file_id)


track_routes(
    router,
    "/isobmff_tracks/{file_id}",
    "isobmff_track",
    Annotated[str, Depends(_file_id)],
)
