"""The index of an ISOBMFF file over HTTP: sent, answered in many forms, asked for a moment."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import Query, Request, Response

from fragdex.errors import (
    BuildError,
    DamagedIndex,
    IndexMismatch,
    InexactIndex,
    InvalidRequest,
    MissingExtra,
    NoSyncSample,
    NotAcceptable,
    NotReady,
    RecordNotFound,
    RequestTimedOut,
    SourceNotFound,
    TooLarge,
    TrackNotFound,
    Unavailable,
    Unprocessable,
    UnverifiedSync,
)
from fragdex.formats import FORMS as ALL_FORMS
from fragdex.responses import has_already
from fragdex.service.context import ServiceContext
from fragdex.service.isobmff import forms, indexing, opened, operations, seeking
from fragdex.service.isobmff.model import FileRecord, SeekAnswer
from fragdex.service.isobmff.router import router
from fragdex.service.web.auth import Asking, InContext, bearer_of
from fragdex.service.web.bodies import in_thread
from fragdex.service.web.documents import INDEX
from fragdex.service.web.fields import RecordId, record_id
from fragdex.service.web.problems import answers
from fragdex.service.web.ranges import chosen, etag_of
from fragdex.service.web.routing import with_fast_path

__all__ = ["MEDIA_TYPES", "index_answer", "router"]

MEDIA_TYPES: dict[forms.FormName, str] = {form: ALL_FORMS[form].media_type for form in forms.FORMS}
BINARY = {"schema": {"type": "string", "format": "binary"}}
BODY: dict[str, Any] = {
    "requestBody": {
        "description": "the index as JSON, or as `.fidx`; whatever Content-Type says",
        "required": True,
        "content": {
            "application/json": {"schema": INDEX},
            MEDIA_TYPES["fidx"]: BINARY,
        },
    },
}
FORM_ANSWERS: dict[int | str, dict[str, Any]] = {
    **answers(
        RecordNotFound, TrackNotFound, SourceNotFound, NotAcceptable, InexactIndex, BuildError,
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
async def upload_isobmff_file_index(
    id: RecordId, request: Request, caller: Asking, context: InContext
) -> FileRecord:
    """Send the index of a file; the one before it stays unless all of this one holds."""
    return await in_thread(
        request,
        context.settings.max_index_bytes,
        lambda pieces: indexing.receive_index(context, caller.tenant_id, id, pieces),
    )


@router.get(
    "/isobmff_files/{id}/index",
    response_class=Response,
    responses=FORM_ANSWERS,
)
def get_isobmff_file_index(
    id: RecordId,
    request: Request,
    caller: Asking,
    context: InContext,
    format: Annotated[forms.IndexForm | None, Query(description="instead of Accept")] = None,
    track: TrackId = None,
) -> Response:
    """The index of a file, in the form that `format` or Accept names; `track` for sidx and hls.

    An `hls` without `track` is a multivariant playlist where several tracks are files of their own.
    """
    return index_answer(request, context, caller.tenant_id, id, format, track)


def index_answer(
    request: Request,
    context: InContext,
    tenant_id: str,
    file_id: str,
    form: forms.FormName | None = None,
    track_id: int | None = None,
    tracks_at: str = "../../isobmff_tracks/{file_id}/{track_id}.mp4",
) -> Response:
    """The index of a file as it is asked for.

    Args:
        tracks_at: where the bytes of a track are, seen from this answer; for playlists.
    """
    keys = operations.index_keys(context, tenant_id, file_id)
    form = form or _accepted(request.headers.get("accept"))
    of = forms.shown(context, file_id, keys, form, track_id)
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

    content = forms.exported(context, keys, form, of, address, keep=token is None)
    return Response(content, media_type=MEDIA_TYPES[form], headers=headers)


def _accepted(accept: str | None) -> forms.FormName:
    wanted = chosen(accept, [*MEDIA_TYPES.values()])
    return next(form for form, media_type in MEDIA_TYPES.items() if media_type == wanted)


# What players ask; of two tracks that are named, the last one counts.
_PLAIN_SEEK = re.compile(
    rb"(?:track=(-1|[0-9]{1,9})&)?time_ms=([0-9]{1,12}(?:\.[0-9]{1,6})?)(?:&track=(-1|[0-9]{1,9}))?"
)


def _seek_at_once(request: Request, context: ServiceContext, tenant_id: str) -> Response:
    asked = _PLAIN_SEEK.fullmatch(request.scope["query_string"])
    assert asked is not None
    track_id, file_id = asked[3] or asked[1], record_id(request.path_params["id"])
    track = None if track_id is None else int(track_id)
    return _as_json(seeking.seek(context, tenant_id, file_id, track, float(asked[2])))


def _as_json(answer: SeekAnswer) -> Response:
    # made once, and not once more to see whether it is what it is
    return Response(answer.model_dump_json(exclude_unset=True), media_type="application/json")


@router.get(
    "/isobmff_files/{id}/seek",
    response_model=SeekAnswer,
    responses=answers(
        RecordNotFound,
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
@with_fast_path(_seek_at_once, _PLAIN_SEEK)
def seek_isobmff_file(
    id: RecordId,
    caller: Asking,
    context: InContext,
    time_ms: Milliseconds,
    track: TrackId = None,
    end_ms: Annotated[
        float | None,
        Query(ge=-1e15, le=1e15, allow_inf_nan=False, description="exclusive; asks for `ranges`"),
    ] = None,
    verified: Annotated[
        bool,
        Query(
            description="look at the pictures, and go back to one that a decoder can start at, "
            "whatever the flags of the file say"
        ),
    ] = False,
) -> Response:
    """The bytes at which decoding starts for a moment of the presentation."""
    return _as_json(seeking.seek(context, caller.tenant_id, id, track, time_ms, end_ms, verified))
