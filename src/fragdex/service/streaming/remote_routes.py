"""Films beyond the service, packaged for players: a manifest, and segments by their numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import Path, Query, Request, Response
from pydantic import Field

from fragdex.errors import (
    BuildError,
    FormatError,
    InexactIndex,
    LimitExceeded,
    NoSyncSample,
    RecordNotFound,
    Unavailable,
    Unprocessable,
)
from fragdex.service.streaming.remote_titles import SCRUB, RemoteTitle, RemoteTitles
from fragdex.service.streaming.responses import BYTES, token_of, view_response
from fragdex.service.web.auth import Asking, InContext, own_origin
from fragdex.service.web.fields import (
    NO_NUL,
    ApiModel,
)
from fragdex.service.web.prefix import public_path
from fragdex.service.web.problems import answers
from fragdex.service.web.ranges import media_answers
from fragdex.service.web.routing import PREFIX, api_router
from fragdex.views.renditions import Rendition

router = api_router("streaming")

_REFUSALS: Final = answers(
    RecordNotFound, Unprocessable, FormatError, BuildError, NoSyncSample, InexactIndex,
    LimitExceeded, Unavailable,
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

    `{src}` is in the fragment, which nobody is sent: the query names the media already, encoded.
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


@router.get("/transcode/manifest.json", responses=_REFUSALS)
def get_remote_manifest(
    url: Url, request: Request, caller: Asking, context: InContext
) -> RemoteManifest:
    """Media at a URL as renditions with segments; packaged, and nothing is encoded."""
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
                RemoteVideo(**_told(one), width=one.track.info.width, height=one.track.info.height)
                for one in video
            ],
            audioRenditions=[
                RemoteAudio(
                    **_told(one),
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


def _told(one: Rendition) -> Mapping[str, Any]:
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
    responses={**_REFUSALS, **media_answers("video/mp4", "audio/mp4")},
)
def get_remote_segment(
    rendition: Annotated[str, Path(description=f"as the manifest names it, such as `{SCRUB}`")],
    part: Annotated[str, Path(description="`init.mp4`, or `N.m4s`, N from 1")],
    url: Url,
    request: Request,
    caller: Asking,
    context: InContext,
    track_id: Annotated[
        str | None, Query(alias="trackId", max_length=100, description="not needed")
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
