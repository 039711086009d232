"""Files over HTTP: images and captions at addresses of their own, all types below `/files`."""

from __future__ import annotations

from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import Depends, Query, Request, Response

from fragdex.errors import (
    Conflict,
    Finished,
    IndexMismatch,
    NotReady,
    QuotaExceeded,
    RecordNotFound,
    RequestTimedOut,
    StoreFull,
    TooLarge,
    Unprocessable,
    UploadBusy,
    UploadGap,
)
from fragdex.service import captions
from fragdex.service.captions import CAPTIONS, CaptionList, CaptionRecord, CaptionType, NewCaption
from fragdex.service.context import ServiceContext
from fragdex.service.files import operations
from fragdex.service.files.operations import (
    AnyFile,
    AnyFileList,
    AnyFileStatus,
    Deleted,
    NewAnyFile,
    NewName,
    UploadPart,
    UploadParts,
    isobmff_id,
)
from fragdex.service.images import operations as images
from fragdex.service.images.operations import IMAGES, TYPES, ImageList, ImageRecord, NewImage
from fragdex.service.isobmff import indexing, opened, tracks
from fragdex.service.isobmff.operations import (
    FileRecord,
    NewFileTrack,
    NewTrack,
    TrackList,
    TrackRecord,
)
from fragdex.service.isobmff.routes import (
    CREATION,
    FORM_ANSWERS,
    INDEX_BODY,
    TrackId,
    announced,
    index_answer,
    track_routes,
)
from fragdex.service.records.identifiers import rfc3339
from fragdex.service.records.pages import DEFAULT_LIMIT
from fragdex.service.records.tables import FileType
from fragdex.service.unprocessed.records import whole
from fragdex.service.uploads.family import Family
from fragdex.service.uploads.operations import assemble_parts, plan_parts
from fragdex.service.uploads.repository import FileStatus
from fragdex.service.web.auth import Asking, InContext
from fragdex.service.web.bodies import in_thread
from fragdex.service.web.fields import Cursor, Limit, RecordId
from fragdex.service.web.idempotency import idempotency_key
from fragdex.service.web.problems import answers
from fragdex.service.web.ranges import (
    made_text,
    made_text_answers,
    media_answers,
    media_of,
    text_of,
)
from fragdex.service.web.routing import api_router, get_and_head
from fragdex.service.web.threads import asks_store, run_by_records

# An SVG is a document: opened by itself it must not run, load or send anything.
SVG_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; sandbox"

image_router = api_router("image files")
image_routes = Family(image_router, "/image_files", "image file", record_at="/{id}.json")

image_routes.creation(NewImage, ImageRecord, images.create_image)
image_routes.listing(ImageList, FileStatus, IMAGES.page)
image_routes.by_md5(ImageRecord, IMAGES.find)
image_routes.upload(ImageRecord, IMAGES.get, IMAGES.target)
image_routes.record(
    ImageRecord, IMAGES.get, description="The record, with the size in pixels once it is known."
)
image_routes.media(
    tuple(dict.fromkeys(TYPES.values())), IMAGES.stored, {"Content-Security-Policy": SVG_POLICY}
)
image_routes.deletion(IMAGES.delete)


def _create_caption(
    context: ServiceContext, tenant_id: str, new: NewCaption
) -> tuple[CaptionRecord, bool]:
    return captions.create_caption(context, tenant_id, new, new.md5)


caption_router = api_router("caption files")
caption_routes = Family(caption_router, "/caption_files", "caption file", record_at="/{id}.json")

caption_routes.creation(NewCaption, CaptionRecord, _create_caption)
caption_routes.listing(CaptionList, FileStatus, CAPTIONS.page)
caption_routes.by_md5(CaptionRecord, CAPTIONS.find)
caption_routes.upload(CaptionRecord, CAPTIONS.get, CAPTIONS.target)
caption_routes.record(CaptionRecord, CAPTIONS.get)


@get_and_head(
    caption_router,
    "/caption_files/{id}.vtt",
    name="download_caption_file_vtt",
    responses={**answers(RecordNotFound, NotReady), **made_text_answers(text_of("text/vtt"))},
)
@asks_store
def get_caption_vtt(id: RecordId, request: Request, caller: Asking, context: InContext) -> Response:
    """Captions of any type as WebVTT, with every cue of them, each a block of its own."""
    content = captions.caption_webvtt(context, caller.tenant_id, id)
    return made_text(request, content, CaptionType.WEBVTT)


caption_routes.media(tuple(CaptionType), captions.caption_bytes)
caption_routes.deletion(CAPTIONS.delete)


router = api_router("files")
routes = Family(router, "/files", "file")

Answers = dict[int | str, dict[str, Any]]

NOT_FOUND = answers(RecordNotFound)
# What decides between the bytes of an image and its record.
VARY = "Accept, Content-Type"


def _record_or_bytes() -> Answers:
    responses: Answers = {
        **answers(RecordNotFound, NotReady),
        **media_answers(*dict.fromkeys(TYPES.values())),
    }
    record = {"schema": {"$ref": "#/components/schemas/AnyFile"}}
    content = {"application/json": record, **responses[200]["content"]}
    responses[200] = {"description": "The record, or the bytes of an image", "content": content}
    return responses


routes.creation(
    NewAnyFile,
    AnyFile,
    operations.create_file,
    Unprocessable,
    description="Announce a file; its bytes follow by upload. A video is then processed.",
)


@router.get("/files")
def list_files(
    caller: Asking,
    context: InContext,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
    type: Annotated[FileType | None, Query(description="only those")] = None,
    status: Annotated[AnyFileStatus | None, Query(description="only those")] = None,
) -> AnyFileList:
    """Files of all types, newest first."""
    return operations.list_files(context, caller.tenant_id, limit, cursor, type, status)


routes.by_md5(AnyFile, operations.file_by_md5)


routes.upload(AnyFile, operations.file_by_id, operations.target_of)
routes.progress(
    operations.look,
    whole,
    "`progress {progress}`, then `complete` or `error`",
    description="The progress of a file as events; for a video, the progress of its processing.",
)
routes.deletion(
    operations.delete_file, description="Delete a file, its bytes and everything derived from it."
)


@router.patch("/files/{id}", responses=NOT_FOUND)
async def update_file(id: RecordId, new: NewName, caller: Asking, context: InContext) -> AnyFile:
    """Rename a file; its bytes and everything derived from it stay."""
    tenant_id = caller.tenant_id
    return await run_by_records(
        context, lambda c: operations.rename_file(c, tenant_id, id, new.filename)
    )


@router.post("/files/{id}/delete", responses=NOT_FOUND)
def post_file_deletion(id: RecordId, caller: Asking, context: InContext) -> Deleted:
    """Delete a file like DELETE, for clients that can send only GET and POST."""
    operations.delete_file(context, caller.tenant_id, id)
    return Deleted(id=id)


@get_and_head(router, "/files/{id}", responses=_record_or_bytes())
async def get_file(id: RecordId, request: Request, caller: Asking, context: InContext) -> Response:
    """The record; of an image its bytes, unless Accept or Content-Type names JSON."""
    return await run_by_records(context, lambda c: _shown(c, request, caller.tenant_id, id))


def _shown(context: ServiceContext, request: Request, tenant_id: str, id: str) -> Response:
    record = operations.file_by_id(context, tenant_id, id)
    if record.type is not FileType.IMAGE or _names_json(request):
        return Response(
            record.model_dump_json(), media_type="application/json", headers={"Vary": VARY}
        )
    stored = IMAGES.stored(context, tenant_id, id)
    return media_of(request, stored, {"Content-Security-Policy": SVG_POLICY, "Vary": VARY})


def _names_json(request: Request) -> bool:
    """Programs name it; an element of a page that shows an image does not."""
    headers = request.headers
    return any("json" in headers.get(name, "").lower() for name in ("accept", "content-type"))


@router.post(
    "/files/{id}/parts", responses=answers(RecordNotFound, Conflict, Finished, QuotaExceeded)
)
def create_file_parts(id: RecordId, caller: Asking, context: InContext) -> UploadParts:
    """URLs of the object store for the missing parts of a file.

    409 with `offered: false` where the service takes the bytes itself.
    """
    target = operations.target_of(context, caller.tenant_id, id)
    plan = plan_parts(context, caller.tenant_id, target.family, id)
    return UploadParts(
        parts=[
            UploadPart(start=one.start, byte_size=one.byte_size, url=one.url) for one in plan.parts
        ],
        missing=plan.missing,
        expires_at=rfc3339(plan.expires_at) or "",
    )


@router.post(
    "/files/{id}/parts/complete",
    status_code=201,
    responses=answers(
        RecordNotFound,
        Conflict,
        Finished,
        UploadGap,
        UploadBusy,
        Unprocessable,
        QuotaExceeded,
        StoreFull,
    ),
)
@asks_store
def complete_file_parts(id: RecordId, caller: Asking, context: InContext) -> AnyFile:
    """Assemble a file from its parts when all are stored; they are read and checked."""
    target = operations.target_of(context, caller.tenant_id, id)
    assemble_parts(context, caller.tenant_id, target.family, id, target.arrival)
    return operations.file_by_id(context, caller.tenant_id, id)


TRACKS = "/files/{id}/tracks"


async def _file_id(caller: Asking, id: RecordId) -> str:
    return id


@router.post(TRACKS, status_code=201, responses=CREATION, dependencies=[Depends(idempotency_key)])
async def create_file_track(
    id: RecordId, new: NewFileTrack, response: Response, caller: Asking, context: InContext
) -> TrackRecord:
    """Announce a track of a video that is a separate file; its bytes follow by upload."""

    def create(context: ServiceContext) -> tuple[TrackRecord, bool]:
        isobmff_file_id = isobmff_id(context, caller.tenant_id, id, make=True)
        track = NewTrack(**{**new.model_dump(), "file_id": isobmff_file_id})
        return tracks.create_track(context, caller.tenant_id, track)

    return await announced(context, response, TRACKS.format(id=id), create)


@router.get(TRACKS, responses=NOT_FOUND)
def list_file_tracks(id: RecordId, caller: Asking, context: InContext) -> TrackList:
    """The tracks of a video whose bytes are announced, by their ids."""
    isobmff_file_id = isobmff_id(context, caller.tenant_id, id)
    return tracks.list_tracks(context, caller.tenant_id, isobmff_file_id)


track_routes(router, TRACKS, "file_track", Annotated[str, Depends(_file_id)], isobmff_id)


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
    """Send the index of a video; it replaces the old one only if it is valid."""
    isobmff_file_id = await run_sync(lambda: isobmff_id(context, caller.tenant_id, id, make=True))
    return await in_thread(
        request,
        context.settings.max_index_bytes,
        lambda pieces: indexing.receive_index(context, caller.tenant_id, isobmff_file_id, pieces),
    )


@router.get("/files/{id}/index", response_class=Response, responses=FORM_ANSWERS)
@asks_store
def get_file_index(
    id: RecordId,
    request: Request,
    caller: Asking,
    context: InContext,
    format: Annotated[opened.IndexForm | None, Query(description="instead of Accept")] = None,
    track: TrackId = None,
) -> Response:
    """The index of a video, in the format of `format` or Accept; `track` for sidx and hls.

    An `hls` without `track` is a multivariant playlist where several tracks are files of their own.
    """
    isobmff_file_id = isobmff_id(context, caller.tenant_id, id)
    return index_answer(
        request,
        context,
        caller.tenant_id,
        isobmff_file_id,
        format,
        track,
        tracks_at="tracks/{track_id}.mp4",
    )
