"""ISOBMFF files over HTTP."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Path, Query, Request, Response

from fragdex.errors import (
    BuildError,
    Conflict,
    DamagedIndex,
    IndexMismatch,
    InexactIndex,
    InvalidRequest,
    MissingExtra,
    NoSyncSample,
    NotAcceptable,
    NotReady,
    Obstructed,
    RecordNotFound,
    RequestTimedOut,
    SourceNotFound,
    TooLarge,
    TrackNotFound,
    Unavailable,
    Unprocessable,
    UnverifiedSync,
)
from fragdex.responses import has_already
from fragdex.seeking.forms import FORMS as ALL_FORMS
from fragdex.service.context import ServiceContext
from fragdex.service.isobmff import indexing, opened, operations, tracks
from fragdex.service.isobmff.operations import (
    MAX_TRACK_ID,
    FileList,
    FileRecord,
    FileWithTracks,
    IsobmffFileStatus,
    NewFile,
    NewTrack,
    SeekAnswer,
    TrackList,
    TrackRecord,
)
from fragdex.service.uploads.family import Family
from fragdex.service.uploads.model import Progress, Target
from fragdex.service.uploads.receiving import BODY, REFUSALS, ensure_complete, receive_request
from fragdex.service.web.auth import Asking, InContext, bearer_of
from fragdex.service.web.bodies import in_thread
from fragdex.service.web.documents import INDEX
from fragdex.service.web.fields import RecordId, record_id
from fragdex.service.web.idempotency import idempotency_key
from fragdex.service.web.problems import UNMADE, answers
from fragdex.service.web.ranges import chosen, etag_of, media_answers, media_of
from fragdex.service.web.routing import PREFIX, api_router, get_and_head, with_fast_path
from fragdex.service.web.threads import asks_store, run_by_records

router = api_router("ISOBMFF files")


MEDIA_TYPES: dict[opened.FormName, str] = {
    form: ALL_FORMS[form].media_type for form in opened.FORMS
}
BINARY = {"schema": {"type": "string", "format": "binary"}}
INDEX_BODY: dict[str, Any] = {
    "requestBody": {
        "description": "the index as JSON, or as `.fidx`; whatever Content-Type says",
        "required": True,
        "content": {"application/json": {"schema": INDEX}, MEDIA_TYPES["fidx"]: BINARY},
    }
}
FORM_ANSWERS: dict[int | str, dict[str, Any]] = {
    **answers(
        *UNMADE, TrackNotFound, SourceNotFound, NotAcceptable, InexactIndex, BuildError,
        DamagedIndex, MissingExtra,
    ),
    200: {
        "description": "The index",
        "content": {
            "application/json": {"schema": INDEX},
            MEDIA_TYPES["hls"]: {"schema": {"type": "string"}},
            **{MEDIA_TYPES[form]: BINARY for form in ("fidx", "arrow", "sidx")},
        },
    },
    304: {"description": "The caller has it already"},
}  # fmt: skip
TrackId = Annotated[
    int | None,
    Query(
        ge=-1, le=2**32, description="default: the first video track, or else the first audio track"
    ),
]
Milliseconds = Annotated[float, Query(ge=-1e15, le=1e15, allow_inf_nan=False)]


@router.post(
    "/isobmff_files/{id}/index/upload",
    status_code=201,
    responses=answers(RecordNotFound, Unprocessable, IndexMismatch, TooLarge, RequestTimedOut),
    openapi_extra=INDEX_BODY,
)
async def upload_isobmff_file_index(
    id: RecordId, request: Request, caller: Asking, context: InContext
) -> FileRecord:
    """Send the index of a file; it replaces the old one only if it is valid."""
    return await in_thread(
        request,
        context.settings.max_index_bytes,
        lambda pieces: indexing.receive_index(
            context, caller.tenant_id, operations.own_id(context, caller.tenant_id, id), pieces
        ),
    )


@router.get("/isobmff_files/{id}/index", response_class=Response, responses=FORM_ANSWERS)
@asks_store
def get_isobmff_file_index(
    id: RecordId,
    request: Request,
    caller: Asking,
    context: InContext,
    format: Annotated[opened.IndexForm | None, Query(description="instead of Accept")] = None,
    track: TrackId = None,
) -> Response:
    """The index of a file, in the format of `format` or Accept; `track` for sidx and hls.

    An `hls` without `track` is a multivariant playlist where several tracks are files of their own.
    """
    tenant_id = caller.tenant_id
    return operations.by_own_id(
        context,
        tenant_id,
        id,
        lambda own: index_answer(request, context, tenant_id, own, format, track),
    )


def index_answer(
    request: Request,
    context: InContext,
    tenant_id: str,
    file_id: str,
    form: opened.FormName | None = None,
    track_id: int | None = None,
    tracks_at: str = "../../isobmff_tracks/{file_id}/{track_id}.mp4",
) -> Response:
    """The index of a file as it is requested.

    Args:
        tracks_at: where the bytes of a track are, seen from this answer; for playlists.
    """
    keys = operations.index_keys(context, tenant_id, file_id)
    form = form or _accepted(request.headers.get("accept"))
    of = opened.shown(context, file_id, keys, form, track_id)
    etag = etag_of(opened.etag_md5(keys), form + ".".join(map(str, of.tracks)))
    headers = {"ETag": etag, "Vary": "Accept", "Cache-Control": "private, no-cache"}
    if has_already(request.headers, etag):
        return Response(status_code=304, headers=headers)
    # who came with a token in the URL has no other way to show it where the playlist leads
    token = None if bearer_of(request) else request.query_params.get("token")
    several = len(of.tracks) > 1

    def address(track: int) -> str:
        if several:
            return f"index?format=hls&track={track}" + (f"&token={token}" if token else "")
        at = tracks_at.format(file_id=file_id, track_id=track)
        return at + (f"?token={token}" if token else "")

    content = opened.exported(context, keys, form, of, address, keep=token is None)
    return Response(content, media_type=MEDIA_TYPES[form], headers=headers)


def _accepted(accept: str | None) -> opened.FormName:
    wanted = chosen(accept, [*MEDIA_TYPES.values()])
    return next(form for form, media_type in MEDIA_TYPES.items() if media_type == wanted)


# What players ask; of two tracks that are named, the last one counts.
_PLAIN_SEEK = re.compile(
    rb"(?:track=(-1|[0-9]{1,9})&)?time_ms=([0-9]{1,12}(?:\.[0-9]{1,6})?)(?:&track=(-1|[0-9]{1,9}))?"
)


def _seek_sync(request: Request, context: ServiceContext, tenant_id: str) -> Response:
    match = _PLAIN_SEEK.fullmatch(request.scope["query_string"])
    assert match is not None
    track_id, file_id = match[3] or match[1], record_id(request.path_params["id"])
    track = None if track_id is None else int(track_id)
    time_ms = float(match[2])
    return operations.by_own_id(
        context,
        tenant_id,
        file_id,
        lambda own: _as_json(tracks.seek(context, tenant_id, own, track, time_ms)),
    )


def _as_json(answer: SeekAnswer) -> Response:
    # made once, and not once more to see whether it is what it is
    return Response(answer.model_dump_json(exclude_unset=True), media_type="application/json")


@router.get(
    "/isobmff_files/{id}/seek",
    response_model=SeekAnswer,
    responses=answers(
        *UNMADE,
        TrackNotFound,
        SourceNotFound,
        InvalidRequest,
        NoSyncSample,
        NotReady,
        Unprocessable,
        Unavailable,
        UnverifiedSync,
        InexactIndex,
    ),
)
@with_fast_path(_seek_sync, _PLAIN_SEEK)
async def seek_isobmff_file(
    id: RecordId,
    caller: Asking,
    context: InContext,
    time_ms: Milliseconds,
    track: TrackId = None,
    end_ms: Annotated[
        float | None,
        Query(ge=-1e15, le=1e15, allow_inf_nan=False, description="exclusive; adds `ranges`"),
    ] = None,
    verified: Annotated[
        bool,
        Query(
            description="look at the pictures, and go back to one that a decoder can start at, "
            "whatever the flags of the file say"
        ),
    ] = False,
) -> Response:
    """The bytes at which decoding starts for a presentation time."""
    tenant_id = caller.tenant_id

    def sought(context: ServiceContext) -> Response:
        return operations.by_own_id(
            context,
            tenant_id,
            id,
            lambda own: _as_json(
                tracks.seek(context, tenant_id, own, track, time_ms, end_ms, verified)
            ),
        )

    return await run_by_records(context, sought)


Answers = dict[int | str, dict[str, Any]]
Found = TypeVar("Found")

CREATION: Answers = {
    **answers(RecordNotFound, TooLarge, Obstructed),
    200: {"model": TrackRecord, "description": "It is announced already"},
}
MISSING: Answers = {202: {"model": TrackRecord, "description": "Bytes are missing"}}
NOT_FOUND = answers(RecordNotFound)
MEDIA = {**answers(*UNMADE, NotReady), **media_answers("video/mp4", "audio/mp4", "application/mp4")}

OfFile = Callable[[ServiceContext, str, str], str]
"""The id of the ISOBMFF file that a tenant's path names; raises RecordNotFound."""

_NUMBER = re.compile(r"-1|0|[1-9][0-9]{0,9}", re.ASCII)


async def _file_id(
    caller: Asking, file_id: Annotated[str, Path(description="as the service gave it")]
) -> str:
    return record_id(file_id)


async def _file_of_query(
    caller: Asking, file_id: Annotated[str, Query(description="of which file")]
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
    """The `track_id` of a path; what is not a number is of no track."""
    if not _NUMBER.fullmatch(text) or int(text) > MAX_TRACK_ID:
        raise RecordNotFound("there is no such track")
    return int(text)


TrackNumber = Annotated[int, Depends(_track_number)]
TrackFile = Annotated[int, Depends(_track_file)]


async def announced(
    context: ServiceContext,
    response: Response,
    place: str,
    create: Callable[[ServiceContext], tuple[TrackRecord, bool]],
) -> TrackRecord:
    """The answer to POST of a new track; `place` is that of the tracks of its file."""
    record, is_new = await run_by_records(context, create)
    if not is_new:
        response.status_code = 200
    response.headers["Location"] = (
        f"{PREFIX}{place.format(file_id=record.file_id)}/{record.track_id}"
    )
    return record


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
    own = of_file or operations.own_id
    at = f"{place}/{{track_id}}"

    def found(
        context: ServiceContext, tenant_id: str, named: str, find: Callable[[str], Found]
    ) -> Found:
        if of_file is None:
            return operations.by_own_id(context, tenant_id, named, find)
        return find(of_file(context, tenant_id, named))

    async def post(
        named: str,
        track_id: TrackNumber,
        request: Request,
        response: Response,
        caller: Asking,
        context: InContext,
    ) -> TrackRecord:
        tenant_id, limit = caller.tenant_id, context.settings.max_track_bytes
        own_id = await run_sync(own, context, tenant_id, named)
        name = tracks.track_name(own_id, track_id)
        target = Target(tracks.FAMILY, name, tracks.ARRIVAL, limit)
        progress = await receive_request(request, tenant_id, target)
        response.status_code = 201 if progress.complete else 202
        return await run_sync(tracks.track_by_id, context, tenant_id, own_id, track_id)

    def get(named: str, track_id: TrackNumber, caller: Asking, context: InContext) -> TrackRecord:
        tenant_id = caller.tenant_id
        record = found(
            context,
            tenant_id,
            named,
            lambda own: tracks.track_by_id(context, tenant_id, own, track_id),
        )
        ensure_complete(Progress(record.byte_size or 0, record.next_byte, record.complete))
        return record

    def sync_handler(request: Request, context: ServiceContext, tenant_id: str) -> Response:
        path = request.path_params
        track_id = _number(path["track_id"].removesuffix(".mp4"))
        file_id = record_id(path["file_id"])
        return operations.by_own_id(
            context,
            tenant_id,
            file_id,
            lambda own: media_of(request, tracks.track_bytes(context, tenant_id, own, track_id)),
        )

    def media(
        named: str, track_id: TrackFile, request: Request, caller: Asking, context: InContext
    ) -> Response:
        tenant_id = caller.tenant_id
        stored = found(
            context,
            tenant_id,
            named,
            lambda own: tracks.track_bytes(context, tenant_id, own, track_id),
        )
        return media_of(request, stored)

    def delete(named: str, track_id: TrackNumber, caller: Asking, context: InContext) -> None:
        own_id = own(context, caller.tenant_id, named)
        tracks.delete_track(context, caller.tenant_id, own_id, track_id)

    if of_file is None:  # to look another file up takes a transaction
        with_fast_path(sync_handler)(media)
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
        description="The track, if all its bytes have arrived; otherwise 404 with `next_byte`.",
        response_model=TrackRecord,
        responses=answers(*UNMADE),
    )(get)
    get_and_head(
        router,
        at,
        name=f"download_{noun}",
        description="The bytes of a track, complete or by ranges.",
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
    "/isobmff_tracks", status_code=201, responses=CREATION, dependencies=[Depends(idempotency_key)]
)
async def create_isobmff_track(
    new: NewTrack, response: Response, caller: Asking, context: InContext
) -> TrackRecord:
    """Announce the bytes of a track; they follow by upload."""

    def create(context: ServiceContext) -> tuple[TrackRecord, bool]:
        own = operations.own_id(context, caller.tenant_id, new.file_id)
        track = new.model_copy(update={"file_id": own})
        return tracks.create_track(context, caller.tenant_id, track)

    return await announced(context, response, "/isobmff_tracks/{file_id}", create)


@router.get("/isobmff_tracks", responses=answers(*UNMADE))
def list_isobmff_tracks(
    caller: Asking, context: InContext, file_id: Annotated[str, Depends(_file_of_query)]
) -> TrackList:
    """The tracks of a file whose bytes are announced, by their ids."""
    tenant_id = caller.tenant_id
    return operations.by_own_id(
        context, tenant_id, file_id, lambda own: tracks.list_tracks(context, tenant_id, own)
    )


def _with_tracks(context: ServiceContext, tenant_id: str, file_id: str) -> FileWithTracks:
    return operations.by_own_id(
        context, tenant_id, file_id, lambda own: tracks.file_with_tracks(context, tenant_id, own)
    )


track_routes(
    router, "/isobmff_tracks/{file_id}", "isobmff_track", Annotated[str, Depends(_file_id)]
)


routes = Family(router, "/isobmff_files", "ISOBMFF file")

routes.creation(
    NewFile,
    FileRecord,
    operations.create_file,
    description="Register a file by its md5; its index and its tracks follow.",
)
routes.listing(FileList, IsobmffFileStatus, operations.FILES.page)
routes.by_md5(FileRecord, operations.file_by_md5, description="The file with this md5.")
routes.record(
    FileWithTracks, _with_tracks, description="A file and its tracks.", responses=answers(*UNMADE)
)
routes.deletion(
    operations.delete_file,
    description="Delete a file, its index, its tracks and their bytes.",
    responses=answers(RecordNotFound, Conflict),
)
