"""Videos as players want them, over HTTP: files of the service, and those of other hosts by URL."""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from fractions import Fraction
from typing import Annotated, Any, Final, cast
from urllib.parse import quote

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import Field
from starlette.responses import PlainTextResponse

from fragdex.byterange import ByteRange
from fragdex.decoding.picture_files import FORMATS, media_type
from fragdex.errors import (
    BuildError,
    Conflict,
    FormatError,
    InexactIndex,
    InvalidRequest,
    LimitExceeded,
    MediaUnavailable,
    NoSyncSample,
    NotReady,
    RecordNotFound,
    SourceChanged,
    SourceNotFound,
    TrackNotFound,
    Unavailable,
    UndecodableMedia,
    Unprocessable,
)
from fragdex.muxing.view import View
from fragdex.origin.waiting import Directives, HlsSkip
from fragdex.packaging.playlists import CLOCK, MANIFEST, utc
from fragdex.packaging.renditions import Rendition
from fragdex.service.context import ServiceContext
from fragdex.service.files.operations import isobmff_id
from fragdex.service.isobmff.operations import by_own_id
from fragdex.service.records.blobs import StoredBytes, used_by
from fragdex.service.streaming import derivatives
from fragdex.service.streaming.arriving import ArrivedTitle, ArrivingTitle
from fragdex.service.streaming.arriving_answers import BYTES, ArrivingFiles
from fragdex.service.streaming.titles import (
    SCRUB,
    Playable,
    RemoteTitle,
    RemoteTitles,
    StoredSegments,
    StoredTitle,
    Texts,
    media_of_file,
    media_of_tracks,
    media_of_upload,
    original_of_file,
    title_of,
)
from fragdex.service.unprocessed.records import FAMILY as VIDEOS
from fragdex.service.web.auth import Asking, InContext, bearer_of, own_origin
from fragdex.service.web.fields import NO_NUL, ApiModel, RecordId, record_id
from fragdex.service.web.prefix import public_path
from fragdex.service.web.problems import HTTP, UNMADE, answers, problem
from fragdex.service.web.ranges import media_answers, media_of
from fragdex.service.web.routing import PREFIX, FastPath, api_router, with_fast_path
from fragdex.service.web.threads import asks_store, iterated_at_store, run_at_store
from fragdex.serving.answers import answer, decides

LISTS: Final = "private, no-cache"
"""Playlists list what exists now; their entity tags say whether it changed."""
_HLS_ADDRESS: Final = re.compile(rb'URI="([^"]+)"|^([^#\r\n].*)$', re.MULTILINE)
_DASH_ADDRESS: Final = re.compile(
    rb'(?:(?:media|initialization)="|value="(?=(?:%s|%s)"))([^"]+)'
    % (re.escape(CLOCK.encode()), re.escape(MANIFEST.encode()))
)


def view_response(
    request: Request,
    view: View,
    opened: Callable[[], AbstractContextManager[list[Any]]],
    cache: str,
) -> Response:
    """The answer to GET or HEAD of a view; reads up to 4 MiB, so that it is called in a thread.

    Args:
        opened: opens its sources.
        cache: of Cache-Control.

    Raises:
        FragdexError: a source cannot be read, or is not what it was.
    """
    fields = {"Cache-Control": cache}
    response = answer(view, request.headers, request.method, opened, fields, iterated_at_store)
    if response.status_code == 412:
        detail = f"the entity tag is {view.etag} now"
        return problem(HTTP[412], detail, headers={"ETag": view.etag})
    if response.status_code != 416:
        return response
    known = {name: response.headers[name] for name in ("Content-Range", "Accept-Ranges")}
    return problem(
        HTTP[416], f"there are {view.size} bytes", headers=known, more={"size": view.size}
    )


def token_of(request: Request) -> str | None:
    """The token in the URL, for clients without headers; None: a header names the caller."""
    return None if bearer_of(request) else request.query_params.get("token")


def with_token(view: View, token: str | None) -> View:
    """A playlist or manifest whose addresses carry a token, so that players show it there."""
    if token is None:
        return view
    mark = f"token={token}".encode()

    def hls(match: re.Match[bytes]) -> bytes:
        address = match[1] or match[2]
        return match[0].replace(address, _marked(address, mark))

    text = view.read()
    if "mpegurl" in view.media_type:
        text = _HLS_ADDRESS.sub(hls, text)
    else:
        text = _DASH_ADDRESS.sub(lambda one: one[0] + _marked(one[1], mark)[len(one[1]) :], text)
    return View(view.media_type, (), [view.etag, token], [len(text)], lambda _: [text])


def _marked(address: bytes, mark: bytes) -> bytes:
    return address + (b"&amp;" if b"?" in address else b"?") + mark


router = api_router("streaming")

Find = Callable[[ServiceContext, str, str], Playable]
"""The title of a record of a tenant; raises RecordNotFound, NotReady, FragdexError."""

Wait = Callable[[Request, ServiceContext, str, str, str], Awaitable[Response | None]]
"""Waits for a file of a title; gives the answer where it is a segment that has begun."""
FindStored = Callable[[ServiceContext, str, str], StoredTitle]
_REFUSALS: Final = (
    *UNMADE, TrackNotFound, SourceNotFound, Conflict, NotReady, Unprocessable, FormatError,
    BuildError, NoSyncSample, InexactIndex, LimitExceeded, Unavailable, SourceChanged,
)  # fmt: skip
_HLS: Final = "application/vnd.apple.mpegurl"
_DASH: Final = "application/dash+xml"
_MP4: Final = ("video/mp4", "audio/mp4", "application/mp4")
_PICTURES: Final = {suffix.removeprefix("."): form for form, suffix in FORMATS.items()}
_PICTURE_TYPES: Final = tuple(map(media_type, FORMATS))
_MOST_PIXELS: Final = 4096
_MOST_MS: Final = 1e12
_SHEET: Final = re.compile(rb"^(\d+)#", re.MULTILINE)

Milliseconds = Annotated[float, Query(ge=0, le=_MOST_MS, allow_inf_nan=False)]
Exact = Annotated[
    bool,
    Query(
        description="true: at exactly the requested time; false: at a sync sample near it, which "
        "costs less"
    ),
]
"""One meaning wherever a time is requested; only the defaults differ."""
Tracks = Annotated[
    str | None,
    Query(
        pattern=r"^[0-9]{1,10}(,[0-9]{1,10})*$",
        max_length=1000,
        description="track ids as `fragmented.mp4` has them, with commas between; without: all",
        examples=["1,2"],
    ),
]
Pixels = Annotated[int | None, Query(ge=1, le=_MOST_PIXELS)]
Every = Annotated[
    float, Query(ge=100, le=86_400_000, allow_inf_nan=False, description="from picture to picture")
]
Tile = Annotated[int, Query(ge=16, le=640, description="pixels of a picture, across")]
Side = Annotated[int, Query(ge=1, le=16, description="pictures on a sheet")]
Segment = Annotated[
    int | None,
    Query(alias="_HLS_msn", ge=0, lt=1 << 48, description="number that the playlist waits for"),
]
Part = Annotated[
    int | None,
    Query(alias="_HLS_part", ge=0, lt=1 << 48, description="part of that segment, from 0"),
]
Skip = Annotated[
    HlsSkip | None, Query(alias="_HLS_skip", description="without segments that the player has")
]
"""What players wait for (RFC 8216bis, 6.2.5)."""
PerPixel = Annotated[int, Query(ge=2, le=10_000_000, description="samples of a pixel")]
Bits = Annotated[int, Query(ge=8, le=16, multiple_of=8, description="8 or 16")]


def _seconds(ms: float) -> Fraction:
    return Fraction(str(ms)) / 1000


async def _picture_form(
    caller: Asking, form: Annotated[str, Path(description="`jpg`, `webp`, `png` or `avif`")]
) -> str:
    if form not in _PICTURES:
        raise RecordNotFound("pictures are there as " + ", ".join(_PICTURES))
    return _PICTURES[form]


async def _peaks_form(
    caller: Asking, form: Annotated[str, Path(description="`json` or `dat`")]
) -> str:
    if form not in ("json", "dat"):
        raise RecordNotFound("peaks are there as json and dat")
    return form


def _media(*types: str) -> dict[int | str, dict[str, Any]]:
    return {**answers(*_REFUSALS), **media_answers(*types)}


class Waveform(ApiModel):
    """The least and the greatest sample of each pixel, as audiowaveform writes them."""

    version: int
    channels: int
    sample_rate: int
    samples_per_pixel: int
    bits: int
    length: int = Field(description="pixels")
    data: list[int] = Field(description="minimum and maximum of each pixel in turn")


def _peaks_answers() -> dict[int | str, dict[str, Any]]:
    responses = _media("application/octet-stream") | answers(*_REFUSALS, UndecodableMedia)
    responses[200] = {**responses[200], "model": Waveform}
    return responses


class Loudness(ApiModel):
    """How loud a sound is."""

    integrated: float | None = Field(description="LUFS; null of silence, and of less than 400 ms")
    range: float | None = Field(description="LU; null where `integrated` is")
    true_peak: float | None = Field(description="dBTP; null of silence")


_FROM_PLAYERS: Final = re.compile(rb"(?:(?:token|CMCD)=[^&]*(?:&|$))*")
"""Queries that change nothing of a segment, and of a playlist but its addresses."""
_SHORT: Final = 256 << 10
"""Bytes of a playlist that is answered where requests arrive."""


def _sync_segment(find: FindStored) -> FastPath:
    """Answers segments whose bytes are at hand; `find` gives the title."""

    def sync_handler(request: Request, context: ServiceContext, tenant_id: str) -> Response:
        if decides(request.scope["headers"]):
            raise BlockingIOError("parts and conditions are answered in a thread")
        path = request.path_params
        title = find(context, tenant_id, record_id(path["id"]))
        name = f"{path['rendition']}/{path['part']}"
        extensions = request.scope.get("extensions") or {}
        fields = {"Cache-Control": BYTES}
        return context.part(StoredSegments).response(title, name, fields, extensions)

    return sync_handler


def _sync_list(find: FindStored) -> FastPath:
    """Answers playlists and manifests that the process keeps; `find` gives the title."""

    def sync_handler(request: Request, context: ServiceContext, tenant_id: str) -> Response:
        path = request.path_params
        title = find(context, tenant_id, record_id(path["id"]))
        view = context.part(Texts).get((title.key, path.get("playlist", MANIFEST)))
        if view is None or view.size > _SHORT or path.get("playlist") == MANIFEST:
            raise BlockingIOError("the playlist is made, or sent, in a thread")
        view = with_token(view, token_of(request))
        # text alone: no source is read
        return view_response(request, view, lambda: nullcontext([b""] * len(view.sources)), LISTS)

    return sync_handler


def title_routes(
    router: APIRouter,
    place: str,
    noun: str,
    find: Find,
    sync_find: FindStored | None = None,
    wait: Wait | None = None,
) -> None:
    """The routes of a title: HLS, DASH, clips, pictures and sound to look at.

    Args:
        place: of the record, below the prefix, with `{id}`.
        noun: what it is called in the names of operations.
        find: its title.
        sync_find: the same, where a stored one can be found without waiting.
        wait: waits for more of one that arrives; None: none does.
    """

    async def playlist(
        id: RecordId,
        playlist: str,
        request: Request,
        caller: Asking,
        context: InContext,
        msn: Segment = None,
        part: Part = None,
        skip: Skip = None,
    ) -> Response:
        if playlist == MANIFEST:
            raise RecordNotFound("the manifest is below /dash")
        tenant_id = caller.tenant_id
        if wait is not None:
            await wait(request, context, tenant_id, id, playlist)
        return await run_at_store(
            lambda: _list(request, context, find(context, tenant_id, id), playlist)
        )

    @asks_store
    def clock(id: RecordId, caller: Asking, context: InContext) -> Response:
        find(context, caller.tenant_id, id)
        return PlainTextResponse(utc(datetime.now(UTC)), headers={"Cache-Control": "no-store"})

    @asks_store
    def manifest(id: RecordId, request: Request, caller: Asking, context: InContext) -> Response:
        return _list(request, context, find(context, caller.tenant_id, id), MANIFEST)

    async def segment(
        id: RecordId,
        rendition: Annotated[str, Path(examples=["v1"])],
        part: Annotated[str, Path(examples=["init.mp4"])],
        request: Request,
        caller: Asking,
        context: InContext,
    ) -> Response:
        tenant_id, name = caller.tenant_id, f"{rendition}/{part}"
        if wait is not None:
            begun = await wait(request, context, tenant_id, id, name)
            if begun is not None:
                return begun

        def whole() -> Response:
            title = find(context, tenant_id, id)
            try:
                view = title.package[name]
            except KeyError:
                raise RecordNotFound("the file has no such segment") from None
            return view_response(request, view, lambda: title.sources_of(view), BYTES)

        return await run_at_store(whole)

    if sync_find is not None:
        with_fast_path(_sync_segment(sync_find), _FROM_PLAYERS)(segment)
        for one in (playlist, manifest):
            with_fast_path(_sync_list(sync_find), _FROM_PLAYERS)(one)

    @asks_store
    def fragmented(id: RecordId, request: Request, caller: Asking, context: InContext) -> Response:
        title = find(context, caller.tenant_id, id)
        return _file(request, title, title.fragmented)

    @asks_store
    def clip(
        id: RecordId,
        request: Request,
        caller: Asking,
        context: InContext,
        start_ms: Milliseconds = 0,
        end_ms: Annotated[
            float | None, Query(gt=0, le=_MOST_MS, allow_inf_nan=False, description="exclusive")
        ] = None,
        tracks: Tracks = None,
        exact: Exact = True,
    ) -> Response:
        if end_ms is not None and end_ms <= start_ms:
            raise InvalidRequest(
                "the clip ends before it starts", pointer="end_ms",
                expected=f"more than {start_ms:g}",
            )  # fmt: skip
        title = find(context, caller.tenant_id, id)
        start, stop = _seconds(start_ms), math.inf if end_ms is None else _seconds(end_ms)
        chosen = None if tracks is None else [int(one) for one in tracks.split(",")]
        return _file(request, title, lambda: title.clip(start, stop, tracks=chosen, exact=exact))

    async def thumbnail(
        id: RecordId,
        form: Annotated[str, Depends(_picture_form)],
        request: Request,
        caller: Asking,
        context: InContext,
        time_ms: Milliseconds = 0,
        w: Pixels = None,
        h: Pixels = None,
        exact: Exact = False,
    ) -> Response:
        tenant_id = caller.tenant_id
        title = await run_at_store(find, context, tenant_id, id)
        stored = await derivatives.thumbnail(
            context, tenant_id, title, _seconds(time_ms), form, exact, width=w, height=h
        )
        return media_of(request, stored)

    async def storyboard(
        id: RecordId,
        request: Request,
        caller: Asking,
        context: InContext,
        every_ms: Every = 10_000,
        w: Tile = 160,
        columns: Side = 10,
        rows: Side = 10,
    ) -> Response:
        tenant_id = caller.tenant_id
        title = await run_at_store(find, context, tenant_id, id)
        parts = await derivatives.storyboard(
            context, tenant_id, title, _seconds(every_ms), w, columns, rows
        )
        parameters = f"every_ms={every_ms:.15g}&w={w}&columns={columns}&rows={rows}"
        token = token_of(request)
        query = parameters + (f"&token={token}" if token else "")
        return await run_at_store(_storyboard, request, context, parts["vtt"], query)

    async def sheet(
        id: RecordId,
        sheet: Annotated[str, Path(examples=["0.jpg"])],
        request: Request,
        caller: Asking,
        context: InContext,
        every_ms: Every = 10_000,
        w: Tile = 160,
        columns: Side = 10,
        rows: Side = 10,
    ) -> Response:
        tenant_id = caller.tenant_id
        title = await run_at_store(find, context, tenant_id, id)
        parts = await derivatives.storyboard(
            context, tenant_id, title, _seconds(every_ms), w, columns, rows
        )
        number = sheet.removesuffix(".jpg")
        if number not in parts or number in (sheet, "vtt"):
            raise RecordNotFound("the storyboard has no such sheet")
        return media_of(request, parts[number])

    async def peaks(
        id: RecordId,
        form: Annotated[str, Depends(_peaks_form)],
        request: Request,
        caller: Asking,
        context: InContext,
        samples_per_pixel: PerPixel = 256,
        bits: Bits = 8,
    ) -> Response:
        tenant_id = caller.tenant_id
        title = await run_at_store(find, context, tenant_id, id)
        parts = await derivatives.waveform(context, tenant_id, title, samples_per_pixel, bits)
        return media_of(request, parts[form])

    async def loudness(id: RecordId, caller: Asking, context: InContext) -> Loudness:
        tenant_id = caller.tenant_id
        title = await run_at_store(find, context, tenant_id, id)
        stored = await derivatives.loudness(context, tenant_id, title)
        return Loudness.model_validate_json(await run_at_store(_text, context, stored))

    router.get(
        f"{place}/loudness",
        name=f"get_{noun}_loudness",
        description="The loudness of the first audio track (EBU R 128).",
        responses=answers(*_REFUSALS, UndecodableMedia),
    )(loudness)
    for path, name, endpoint, description, responses in (
        ("/hls/{playlist}", "hls_playlist", playlist,
         "HLS: `master.m3u8` and the playlists that it refers to.", _media(_HLS)),
        ("/hls/{rendition}/{part}", "hls_segment", segment,
         "An initialization or media segment of HLS.", _media(*_MP4)),
        ("/dash/manifest.mpd", "dash_manifest", manifest, "The DASH manifest.", _media(_DASH)),
        *([] if wait is None else [(
            f"/dash/{CLOCK}", "dash_clock", clock,
            "The time of day, by which players of a video that arrives count.",
            answers(RecordNotFound) | media_answers("text/plain"),
        )]),
        ("/dash/{rendition}/{part}", "dash_segment", segment,
         "An initialization or media segment of DASH.", _media(*_MP4)),
        ("/fragmented.mp4", "fragmented", fragmented,
         "All tracks in one fragmented MP4, with a sidx.", _media(*_MP4)),
        ("/clip.mp4", "clip", clip,
         "An MP4 of the span from `start_ms` to `end_ms`; if `exact` is false, fragments from the "
         "sync sample at or before it on.",
         _media(*_MP4)),
        ("/thumbnail.{form}", "thumbnail", thumbnail,
         "The key frame nearest to `time_ms`; with `exact`, the picture at that time.",
         _media(*_PICTURE_TYPES) | answers(*_REFUSALS, UndecodableMedia)),
        ("/storyboard.vtt", "storyboard", storyboard,
         "Small pictures of the whole video, as WebVTT that refers to parts of sheets.",
         _media("text/vtt") | answers(*_REFUSALS, UndecodableMedia)),
        ("/storyboard/{sheet}", "storyboard_sheet", sheet, "A sheet of the storyboard.",
         _media("image/jpeg") | answers(*_REFUSALS, UndecodableMedia)),
        ("/peaks.{form}", "peaks", peaks,
         "The waveform of the sound, in audiowaveform's forms.",
         _peaks_answers()),
    ):  # fmt: skip
        router.get(
            place + path,
            name=f"get_{noun}_{name}",
            description=description,
            response_class=Response,
            responses=responses,
        )(cast(Any, endpoint))


def _list(request: Request, context: ServiceContext, title: Playable, name: str) -> Response:
    if "/" in name:
        raise RecordNotFound("the file has no such playlist")
    try:
        if isinstance(title, (ArrivingTitle, ArrivedTitle)) and name != MANIFEST:
            asked = Directives.of(request.query_params)
            if asked != Directives():
                view = title.package.reloaded(name, skip=asked.skip, segment=asked.segment)
            else:
                view = title.package[name]
        else:
            view = context.part(Texts).text(title, name)
    except ValueError as error:
        raise InvalidRequest(str(error)) from None
    except KeyError:
        raise RecordNotFound("the file has no such playlist") from None
    view = with_token(view, token_of(request))
    return view_response(request, view, lambda: title.sources_of(view), LISTS)


def _file(request: Request, title: Playable, make: Callable[[], Any]) -> Response:
    view = make()
    return view_response(request, view, lambda: title.sources_of(view), BYTES)


def _text(context: ServiceContext, stored: StoredBytes) -> bytes:
    if stored.content is not None:
        return stored.content
    return b"".join(context.store.read(stored.store_key, ByteRange(0, stored.byte_size)))


def _storyboard(
    request: Request, context: ServiceContext, stored: StoredBytes, query: str
) -> Response:
    """The WebVTT of a storyboard; its sheets stand below it, and are requested by `query`."""
    text = _text(context, stored)
    address = f"storyboard/\\1.jpg?{query}#".encode()
    text = _SHEET.sub(address, text)
    view = View("text/vtt", (), [stored.md5.hex(), query], [len(text)], lambda _: [text])
    return view_response(request, view, lambda: nullcontext([]), LISTS)


def _title_of_isobmff_file(context: ServiceContext, tenant_id: str, file_id: str) -> StoredTitle:
    return by_own_id(
        context,
        tenant_id,
        file_id,
        lambda own: title_of(context, tenant_id, media_of_file(context, tenant_id, own)),
    )


def _original_of_isobmff_file(context: ServiceContext, tenant_id: str, file_id: str) -> StoredTitle:
    return by_own_id(
        context,
        tenant_id,
        file_id,
        lambda own: title_of(context, tenant_id, (original_of_file(context, tenant_id, own),)),
    )


def _title_of_any_file(context: ServiceContext, tenant_id: str, file_id: str) -> StoredTitle:
    """A file of any family: the ISOBMFF file made of it, or its own bytes until it is made."""
    # Mostly it has the same id. Players ask again and again while it is not made, too.
    media = media_of_tracks(context, tenant_id, file_id) or media_of_upload(
        context, tenant_id, file_id
    )
    if media:
        return title_of(context, tenant_id, media)
    return _made_of_any_file(_title_of_isobmff_file, context, tenant_id, file_id)


def _original_of_any_file(context: ServiceContext, tenant_id: str, file_id: str) -> StoredTitle:
    media = media_of_upload(context, tenant_id, file_id)
    if media:
        return title_of(context, tenant_id, media)
    return _made_of_any_file(_original_of_isobmff_file, context, tenant_id, file_id)


def _made_of_any_file(
    find: FindStored, context: ServiceContext, tenant_id: str, file_id: str
) -> StoredTitle:
    try:
        return find(context, tenant_id, file_id)
    except RecordNotFound:
        pass
    try:
        return find(context, tenant_id, isobmff_id(context, tenant_id, file_id))
    except RecordNotFound:
        with context.database.read() as connection:
            own = used_by(connection, tenant_id, VIDEOS, file_id)
        if own is None:
            raise
        return title_of(context, tenant_id, (own,))


def _original_routes(router: APIRouter, place: str, noun: str, find: FindStored) -> None:
    """The routes of a file as uploaded; `find` gives it as a title."""

    @asks_store
    def faststart(id: RecordId, request: Request, caller: Asking, context: InContext) -> Response:
        title = find(context, caller.tenant_id, id)
        return _file(request, title, title.faststart)

    router.get(
        f"{place}/faststart.mp4",
        name=f"get_{noun}_faststart",
        description="The file as a progressive MP4 with its moov first, also if it was uploaded in "
        "fragments.",
        response_class=Response,
        responses=_media(*_MP4),
    )(faststart)


_arriving = ArrivingFiles(_title_of_any_file)
title_routes(router, "/files/{id}", "file", _arriving.find, _arriving.find_at_once, _arriving.wait)
_original_routes(router, "/files/{id}", "file", _original_of_any_file)
title_routes(
    router, "/isobmff_files/{id}", "isobmff_file", _title_of_isobmff_file, _title_of_isobmff_file
)
_original_routes(router, "/isobmff_files/{id}", "isobmff_file", _original_of_isobmff_file)


_REMOTE_REFUSALS: Final = answers(
    RecordNotFound, Unprocessable, FormatError, BuildError, NoSyncSample, InexactIndex,
    LimitExceeded, Unavailable, MediaUnavailable,
)  # fmt: skip
_SEGMENT: Final = re.compile(r"(?:init\.mp4|([1-9][0-9]{0,8})\.m4s)")
_START_MS: Final = 10
"""Where media begin later than that, the manifest says so."""

Url = Annotated[
    str,
    Query(
        max_length=2048,
        description="of an MP4: https, on a host that the operator allows (`render_hosts`)",
    ),
    NO_NUL,
]


class RemoteRendition(ApiModel):
    """A track of the media."""

    id: str = Field(description="`scrub`: the key frames of the first video alone")
    mimeType: str = Field(description="with codecs")  # noqa: N815
    segmentDurationMs: float = Field(description="of the longest segment")  # noqa: N815
    segmentDurationsMs: list[float]  # noqa: N815
    startTimeOffsetMs: float | None = Field(  # noqa: N815
        None, description="when its first segment begins, where that is later than 10 ms"
    )


class RemoteVideo(RemoteRendition):
    """A video track."""

    width: int | None
    height: int | None


class RemoteAudio(RemoteRendition):
    """An audio track."""

    channels: int | None
    sampleRate: int | None  # noqa: N815
    language: str | None


class Endpoints(ApiModel):
    """URLs, with `{rendition}`, `{segmentId}` (from 1), `{src}` and `{trackId}` to be filled in.

    `{src}` is in the fragment, which is not sent: the query names the media already, encoded.
    """

    initSegment: str  # noqa: N815
    mediaSegment: str  # noqa: N815


class RemoteManifest(ApiModel):
    """Media beyond the service, as they are packaged."""

    sourceUrl: str  # noqa: N815
    durationMs: float  # noqa: N815
    videoRenditions: list[RemoteVideo]  # noqa: N815
    audioRenditions: list[RemoteAudio]  # noqa: N815
    endpoints: Endpoints


@router.get("/transcode/manifest.json", responses=_REMOTE_REFUSALS)
@asks_store
def get_remote_manifest(
    url: Url, request: Request, caller: Asking, context: InContext
) -> RemoteManifest:
    """Media at a URL as renditions with segments, packaged without encoding."""
    place = own_origin(request) + public_path(f"{PREFIX}/transcode")
    token = token_of(request)
    query = f"?url={quote(url, safe='')}&trackId={{trackId}}" + (f"&token={token}" if token else "")
    # pages fill it in as it is: what it has of a query would be taken for ours
    query += "#{src}"

    def manifest(title: RemoteTitle) -> RemoteManifest:
        renditions = title.renditions
        video = [one for one in renditions.values() if one.kind == "video"]
        return RemoteManifest(
            sourceUrl=url,
            durationMs=max(_ms(one.seconds + one.begins) for one in renditions.values()),
            videoRenditions=[
                RemoteVideo(
                    **_facts_of(one), width=one.track.info.width, height=one.track.info.height
                )
                for one in video
            ],
            audioRenditions=[
                RemoteAudio(
                    **_facts_of(one),
                    channels=one.track.info.channel_count,
                    sampleRate=one.track.info.sample_rate,
                    language=one.language,
                )
                for one in renditions.values()
                if one.kind == "audio"
            ],
            endpoints=Endpoints(
                initSegment=f"{place}/{{rendition}}/init.mp4{query}",
                mediaSegment=f"{place}/{{rendition}}/{{segmentId}}.m4s{query}",
            ),
        )

    return context.part(RemoteTitles).use(context, caller.tenant_id, url, manifest)


def _facts_of(one: Rendition) -> Mapping[str, Any]:
    lasts = [_ms(segment.seconds) for segment in one.segments]
    start = _ms(one.segments[0].start)
    return {
        "id": one.name,
        "mimeType": one.made.media_type,
        "segmentDurationMs": max(lasts),
        "segmentDurationsMs": lasts,
        "startTimeOffsetMs": start if start > _START_MS else None,
    }


def _ms(seconds: Any) -> float:
    return round(float(seconds * 1000), 3)


@router.get(
    "/transcode/{rendition}/{part}",
    response_class=Response,
    responses={**_REMOTE_REFUSALS, **media_answers("video/mp4", "audio/mp4")},
)
@asks_store
def get_remote_segment(
    rendition: Annotated[str, Path(description=f"as the manifest names it, such as `{SCRUB}`")],
    part: Annotated[str, Path(description="`init.mp4`, or `N.m4s`, N from 1")],
    url: Url,
    request: Request,
    caller: Asking,
    context: InContext,
    track_id: Annotated[
        str | None,
        Query(
            alias="trackId",
            max_length=100,
            description="tolerated, without effect: `rendition` says which track",
        ),
    ] = None,
) -> Response:
    """A segment of media at a URL."""
    named = _SEGMENT.fullmatch(part)
    if named is None:
        raise RecordNotFound("segments are called init.mp4, 1.m4s and so on")
    number = int(named[1]) if named[1] else None

    def found(title: RemoteTitle) -> Response:
        try:
            view = title.part(rendition, number)
        except KeyError:
            raise RecordNotFound("the media have no such segment") from None
        return view_response(request, view, title.sources, BYTES)

    return context.part(RemoteTitles).use(context, caller.tenant_id, url, found)
