"""Files of this service as sources of a page: read by ranges, for the render's tenant alone.

A page names them by their paths of the HTTP interface (`/api/v1/files/ID`), relative to itself or
under the service's public URL. Where a file consists of tracks, `?type=video` and `?type=audio`
pick the track of that kind. What is no media, such as records and indexes, and all that is asked
for as JSON, is what a client of the tenant would get.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs, urlsplit

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from fragdex.byterange import ByteRange, RangeVerdict, content_range, parse_range
from fragdex.errors import RecordNotFound, TooLarge, Unavailable
from fragdex.rendering.site import ORIGIN, READABLE, Answer, Blocked, media_type_of
from fragdex.service.context import ServiceContext
from fragdex.service.isobmff.operations import file_bytes
from fragdex.service.isobmff.tracks import FAMILY as TRACKS
from fragdex.service.isobmff.tracks import track_name
from fragdex.service.records import blobs
from fragdex.service.records.tables import (
    files,
    isobmff_files,
    isobmff_tracks,
    renders,
)
from fragdex.service.renders.records import FAMILY, result_name
from fragdex.service.web.fields import record_id
from fragdex.service.web.in_process import InProcess
from fragdex.service.web.routing import PREFIX

MAX_BYTES: Final = 64 << 20
"""What one answer holds; whoever needs more asks by ranges."""

_PATH: Final = re.compile(
    rf"{PREFIX}/(?:(?P<family>\w+)/(?P<id>[^/.]+)(?:\.(?P<suffix>\w+)|/(?:tracks/)?(?P<track>-?\d+))?)"
)
_OK: Final = 200
_PASSED_ON: Final = ("accept", "content-type", "if-none-match", "range")
_FILMS: Final = ("files", "isobmff_files", "unprocessed_files")
_PLAIN_FILES: Final = {"image_files": "image", "caption_files": "caption"}
"""Addresses of files that have nothing but their bytes, and the types of those."""
_KINDS: Final = {"video": "video/mp4", "audio": "audio/mp4"}


# Before the paths of what was read as JSON, among those that were read.
_AS_JSON: Final = "json "


@dataclass(frozen=True, slots=True)
class _Found:
    """Bytes of the store that answer."""

    blob: blobs.Blob
    media_type: str


class OwnFiles:
    """An `Outside` that answers with a tenant's files, and nothing else.

    Attributes:
        reads: what was asked for, each with the SHA-256 of what was there; None: nothing.
    """

    def __init__(self, context: ServiceContext, tenant_id: str) -> None:
        self._context, self._tenant_id = context, tenant_id
        self._found: dict[str, _Found | None] = {}
        self.reads: dict[str, str | None] = {}

    def knows(self, url: str) -> bool:
        """Whether a URL is one of this service's interface."""
        return self._own(url) is not None

    def _own(self, url: str) -> str | None:
        """The same under the page's origin, without the path of `public_url`; None: not ours."""
        try:
            parts = urlsplit(url)
        except ValueError:
            return None
        origin = f"{parts.scheme}://{parts.netloc}".lower()
        settings = self._context.settings
        for ours, prefix in ((ORIGIN, ""), (settings.public_origin, settings.public_path)):
            if origin == ours and parts.path.startswith(f"{prefix}{PREFIX}/"):
                return ORIGIN + _path_of(url).removeprefix(prefix)
        return None

    def fetch(self, url: str, headers: Mapping[str, str]) -> Answer:
        """As `Outside.fetch`; 404 where this tenant has no such file, or bytes are missing."""
        own = self._own(url)
        if own is None:
            raise Blocked("not a file of this service")
        url = own
        if _wants_record(url, headers):
            return self._record(url, headers)
        found = self._find(url)
        if found is None:
            return Answer(404, {"content-type": "text/plain", **READABLE}, b"no such file")
        size = found.blob.byte_size
        told = {
            **READABLE,
            "accept-ranges": "bytes",
            "content-type": found.media_type,
            "etag": f'"{found.blob.md5.hex()}"',
        }
        wanted = next((value for name, value in headers.items() if name.lower() == "range"), None)
        verdict = parse_range(wanted, size, max_ranges=1)
        if verdict is RangeVerdict.UNSATISFIABLE:
            return Answer(416, {**told, "content-range": content_range(None, size)})
        if isinstance(verdict, RangeVerdict):
            if size > MAX_BYTES:
                reason = f"the file has more than {MAX_BYTES} bytes: media are read by ranges"
                raise Blocked(reason, lasts=True)
            return Answer(200, told, self._read(found, ByteRange(0, size)))
        part = ByteRange(verdict[0].start, min(verdict[0].stop, verdict[0].start + MAX_BYTES))
        told["content-range"] = content_range(part, size)
        return Answer(206, told, self._read(found, part))

    def holds(self, reads: Mapping[str, str | None]) -> bool:
        """Whether paths of another render's reading lead to the same bytes."""
        for path, sha256 in reads.items():
            if path.startswith(_AS_JSON):
                url = ORIGIN + path.removeprefix(_AS_JSON)
                try:
                    self._record(url, {"accept": "application/json"})
                except Blocked:
                    return False
            else:
                self._find(ORIGIN + path)
            if self.reads[path] != sha256:
                return False
        return True

    def _record(self, url: str, headers: Mapping[str, str]) -> Answer:
        """What a client of the tenant would get of one record.

        A page may come from a stranger: what it was not told of it does not find. Events have no
        end.
        """
        path = _path_of(url)
        _, _, name = urlsplit(url).path.removeprefix(f"{PREFIX}/").partition("/")
        if not name or name.endswith("/progress"):
            raise Blocked("lists and events are not served to pages", lasts=True)
        wanted = {name: text for name, text in headers.items() if name.lower() in _PASSED_ON}
        asked = self._context.part(InProcess)
        try:
            reply = asked.get(self._tenant_id, url, wanted, MAX_BYTES)
        except TooLarge as error:
            raise Blocked(error.message, lasts=True) from None
        except Unavailable as error:
            raise Blocked(error.message) from None
        body = bytes(reply.body)
        key = _AS_JSON + path
        self.reads[key] = hashlib.sha256(body).hexdigest() if reply.status == _OK else None
        return Answer(reply.status, reply.headers | READABLE, body)

    def _read(self, found: _Found, part: ByteRange) -> bytes:
        return b"".join(self._context.store.read(found.blob.store_key, part))

    def _find(self, url: str) -> _Found | None:
        parts, path = urlsplit(url), _path_of(url)
        if path not in self._found:
            kind = parse_qs(parts.query).get("type", [""])[-1]
            with self._context.database.read() as connection:
                self._found[path] = self._look(connection, parts.path, kind)
            found = self._found[path]
            self.reads[path] = None if found is None else found.blob.sha256.hex()
        return self._found[path]

    def _look(self, connection: Connection, path: str, kind: str) -> _Found | None:
        match = _PATH.fullmatch(path)
        if match is None:
            return None
        family, suffix, track = match["family"], match["suffix"], match["track"]
        try:
            id = record_id(match["id"])
        except RecordNotFound:
            return None
        if family in ("isobmff_tracks", "files") and track is not None:
            return self._track(connection, id, isobmff_tracks.c.track_id == int(track))
        if family == "renders" and track is None:
            return self._render(connection, id)
        if suffix is not None or track is not None:
            return None
        types = _PLAIN_FILES.values() if family == "files" else [_PLAIN_FILES.get(family, "")]
        found = self._sent(connection, id, *types)
        if found is not None:
            return found
        return self._media(connection, id, kind) if family in _FILMS else None

    def _media(self, connection: Connection, id: str, kind: str) -> _Found | None:
        """A film: its track of a kind where it has tracks, else its own bytes."""
        row = isobmff_tracks.c
        real = row.track_id > 0
        tracks = sa.select(row.track_id).where(
            row.file_id == id, row.tenant_id == self._tenant_id, real
        )
        has_tracks = connection.execute(tracks.limit(1)).first() is not None
        if kind in _KINDS and has_tracks:
            return self._track(connection, id, real & (row.type == kind))
        return (
            self._sent(connection, id, "video")
            or self._registered(connection, id)
            or self._track(connection, id, real & (row.type == "video"))
            or self._track(connection, id, real & (row.type == "audio"))
        )

    def _sent(self, connection: Connection, id: str, *types: str) -> _Found | None:
        """The bytes of a file of one of these types, as they were sent."""
        mine = (files.c.id == id) & (files.c.tenant_id == self._tenant_id)
        query = sa.select(files).where(mine, files.c.type.in_(types))
        row = connection.execute(query).one_or_none()
        if row is None:
            return None
        blob = blobs.used_by(connection, self._tenant_id, row.type, id)
        return _found(blob, row.mime_type or media_type_of(row.filename))

    def _registered(self, connection: Connection, id: str) -> _Found | None:
        """The bytes that an ISOBMFF file is itself."""
        mine = (isobmff_files.c.id == id) & (isobmff_files.c.tenant_id == self._tenant_id)
        row = connection.execute(sa.select(isobmff_files).where(mine)).one_or_none()
        if row is None:
            return None
        return _found(file_bytes(connection, row), media_type_of(row.filename))

    def _track(
        self, connection: Connection, id: str, which: sa.ColumnElement[bool]
    ) -> _Found | None:
        row = isobmff_tracks.c
        mine = (row.file_id == id) & (row.tenant_id == self._tenant_id) & which
        complete = row.completed_at.is_not(None)
        query = sa.select(row.track_id, row.type).where(mine, complete).order_by(row.track_id)
        found = connection.execute(query.limit(1)).one_or_none()
        if found is None:
            return None
        name = track_name(id, found.track_id)
        blob = blobs.used_by(connection, self._tenant_id, TRACKS, name)
        return _found(blob, _KINDS.get(found.type, "video/mp4"))

    def _render(self, connection: Connection, id: str) -> _Found | None:
        mine = (renders.c.id == id) & (renders.c.tenant_id == self._tenant_id)
        media_type = connection.scalar(sa.select(renders.c.media_type).where(mine))
        blob = blobs.used_by(connection, self._tenant_id, FAMILY, result_name(id))
        return None if media_type is None else _found(blob, media_type)


def _path_of(url: str) -> str:
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def _wants_record(url: str, headers: Mapping[str, str]) -> bool:
    """Whether a request is one for a record rather than for bytes of media.

    Programs name JSON, also where they want media; elements of pages do not.
    """
    match = _PATH.fullmatch(urlsplit(url).path)
    if match is None:
        return True
    family, suffix = match["family"], match["suffix"]
    if match["track"] is not None or family in _PLAIN_FILES:
        return suffix == "json"
    if family not in (*_FILMS, "renders") or suffix is not None:
        return family != "renders"
    named = (text for name, text in headers.items() if name.lower() in ("accept", "content-type"))
    return any("json" in text.lower() for text in named)


def _found(blob: blobs.Blob | None, media_type: str) -> _Found | None:
    return None if blob is None else _Found(blob, media_type)
