"""Seeks, md5 look-ups and bytes of tracks, answered from what is at hand."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response

from fragdex.service.context import ServiceContext
from fragdex.service.isobmff import operations, seeking, tracks
from fragdex.service.isobmff.model import MAX_TRACK_ID
from fragdex.service.records.identifiers import md5_bytes
from fragdex.service.web.fast_path import Shortcut
from fragdex.service.web.ranges import media_of
from fragdex.service.web.routing import PREFIX

__all__ = ["SHORTCUTS"]

_ID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_TRACK = re.compile(r"-1|0|[1-9][0-9]{0,9}", re.ASCII)
_TIME = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,6})?", re.ASCII)


def _seek(
    context: ServiceContext, tenant_id: str, request: Request, found: tuple[str, ...]
) -> Response | None:
    asked: dict[str, str] = {}
    for part in request.scope["query_string"].decode("latin-1").split("&"):
        name, _, value = part.partition("=")
        if name in asked:
            return None
        asked[name] = value
    track, time = asked.pop("track", None), asked.pop("time_ms", "")
    if asked or not _TIME.fullmatch(time) or (track is not None and not _is_track(track)):
        return None
    track_id = None if track is None else int(track)
    answer = seeking.fast_read(context, tenant_id, found[0], track_id, float(time))
    if answer is None:
        return None
    return _json(answer.model_dump_json(exclude_unset=True))


def _file_of_md5(
    context: ServiceContext, tenant_id: str, request: Request, found: tuple[str, ...]
) -> Response | None:
    if request.scope["query_string"]:
        return None
    record = operations.fast_by_md5(context, tenant_id, md5_bytes(found[0], "md5"))
    return None if record is None else _json(record.model_dump_json())


def _track(
    context: ServiceContext, tenant_id: str, request: Request, found: tuple[str, ...]
) -> Response | None:
    file_id, track = found
    if request.scope["query_string"] or not _is_track(track):
        return None
    at = tracks.fast_bytes(context, tenant_id, file_id, int(track))
    if at is None:
        return None
    answer = media_of(request, at)
    return None if answer.status_code == 416 else answer


def _json(text: str) -> Response:
    return Response(f"{text}\n", media_type="application/json")


def _is_track(text: str) -> bool:
    return _TRACK.fullmatch(text) is not None and int(text) <= MAX_TRACK_ID


SHORTCUTS = (
    Shortcut(
        "isobmff_files",
        re.compile(f"{PREFIX}/isobmff_files/({_ID})/seek"),
        f"{PREFIX}/isobmff_files/{{id}}/seek",
        _seek,
    ),
    Shortcut(
        "isobmff_files",
        re.compile(f"{PREFIX}/isobmff_files/md5/([0-9A-Fa-f-]{{32,36}})"),
        f"{PREFIX}/isobmff_files/md5/{{md5}}",
        _file_of_md5,
    ),
    Shortcut(
        "isobmff_tracks",
        re.compile(f"{PREFIX}/isobmff_tracks/({_ID})/([0-9-]{{1,10}})(?:\\.mp4)?"),
        f"{PREFIX}/isobmff_tracks/{{file_id}}/{{track_id}}",
        _track,
    ),
)
"""What stands beside the routes of the same paths."""
