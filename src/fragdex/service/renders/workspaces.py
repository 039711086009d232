"""What a process of the service needs to render one render: its site, and what it may ask for.

A packed site is unpacked once by every process that works on it. Browsers stay warm between the
slices of a render, and all of it goes when the render is over.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex.byterange import ByteRange, content_range, parse_range
from fragdex.errors import RecordNotFound, TooLarge, Unavailable, Unprocessable
from fragdex.record import record
from fragdex.rendering.archives import Bounds, unpack
from fragdex.rendering.browser.model import Limits
from fragdex.rendering.pool import ChildPool, PageSource
from fragdex.rendering.site import (
    ORIGIN,
    READABLE,
    Answer,
    Blocked,
    Folder,
    Page,
    Site,
    WithData,
    media_type_of,
)
from fragdex.rendering.web import AllowedHosts
from fragdex.service.context import ServiceContext
from fragdex.service.isobmff.operations import file_bytes
from fragdex.service.isobmff.tracks import FAMILY as TRACKS
from fragdex.service.isobmff.tracks import track_name
from fragdex.service.records import blobs
from fragdex.service.records.tables import files, isobmff_files, isobmff_tracks, renders
from fragdex.service.renders.records import FAMILY, page_name, result_name, wanted_of
from fragdex.service.web.fields import record_id
from fragdex.service.web.in_process import InProcess
from fragdex.service.web.routing import PREFIX

# Files of this service as sources of a page: read by ranges, for the render's tenant alone.
#
# A page names them by their paths of the HTTP interface (`/api/v1/files/ID`), relative to itself or
# under the service's public URL. Where a file consists of tracks, `?type=video` and `?type=audio`
# pick the track of that kind. What is not media, such as records and indexes, and all that is asked
# for as JSON, is what a client of the tenant would get.


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


@record(frozen=True, slots=True)
class _StoredFile:
    """Bytes of the store that answer."""

    blob: blobs.Blob
    media_type: str


class OwnFiles:
    """An `Outside` that answers with a tenant's files, and nothing else.

    Attributes:
        reads: what was requested, each with the SHA-256 of what was there; None: nothing.
    """

    def __init__(self, context: ServiceContext, tenant_id: str) -> None:
        self._context, self._tenant_id = context, tenant_id
        self._found: dict[str, _StoredFile | None] = {}
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
        file = self._find(url)
        if file is None:
            return Answer(404, {"content-type": "text/plain", **READABLE}, b"no such file")
        size = file.blob.byte_size
        answer_headers = {
            **READABLE,
            "accept-ranges": "bytes",
            "content-type": file.media_type,
            "etag": f'"{file.blob.md5.hex()}"',
        }
        wanted = next((value for name, value in headers.items() if name.lower() == "range"), None)
        asked = parse_range(wanted, size, max_ranges=1)
        if asked.status == 416:
            return Answer(416, {**answer_headers, "content-range": content_range(None, size)})
        (part,) = asked.ranges
        if asked.status == 200:
            if size > MAX_BYTES:
                reason = f"the file has more than {MAX_BYTES} bytes: media are read by ranges"
                raise Blocked(reason, lasts=True)
            return Answer(200, answer_headers, self._read(file, part))
        part = ByteRange(part.start, min(part.stop, part.start + MAX_BYTES))
        answer_headers["content-range"] = content_range(part, size)
        return Answer(206, answer_headers, self._read(file, part))

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
        client = self._context.part(InProcess)
        try:
            reply = client.get(self._tenant_id, url, wanted, MAX_BYTES)
        except TooLarge as error:
            raise Blocked(error.message, lasts=True) from None
        except Unavailable as error:
            raise Blocked(error.message) from None
        body = bytes(reply.body)
        key = _AS_JSON + path
        self.reads[key] = hashlib.sha256(body).hexdigest() if reply.status == _OK else None
        return Answer(reply.status, reply.headers | READABLE, body)

    def _read(self, file: _StoredFile, part: ByteRange) -> bytes:
        return b"".join(self._context.store.read(file.blob.store_key, part))

    def _find(self, url: str) -> _StoredFile | None:
        parts, path = urlsplit(url), _path_of(url)
        if path not in self._found:
            kind = parse_qs(parts.query).get("type", [""])[-1]
            with self._context.database.read() as connection:
                self._found[path] = self._look(connection, parts.path, kind)
            file = self._found[path]
            self.reads[path] = None if file is None else file.blob.sha256.hex()
        return self._found[path]

    def _look(self, connection: Connection, path: str, kind: str) -> _StoredFile | None:
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
        file = self._sent(connection, id, *types)
        if file is not None:
            return file
        return self._media(connection, id, kind) if family in _FILMS else None

    def _media(self, connection: Connection, id: str, kind: str) -> _StoredFile | None:
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

    def _sent(self, connection: Connection, id: str, *types: str) -> _StoredFile | None:
        """The bytes of a file of one of these types, as they were sent."""
        mine = (files.c.id == id) & (files.c.tenant_id == self._tenant_id)
        query = sa.select(files).where(mine, files.c.type.in_(types))
        row = connection.execute(query).one_or_none()
        if row is None:
            return None
        blob = blobs.used_by(connection, self._tenant_id, row.type, id)
        return _stored_file(blob, row.mime_type or media_type_of(row.filename))

    def _registered(self, connection: Connection, id: str) -> _StoredFile | None:
        """The bytes that an ISOBMFF file is itself."""
        mine = (isobmff_files.c.id == id) & (isobmff_files.c.tenant_id == self._tenant_id)
        row = connection.execute(sa.select(isobmff_files).where(mine)).one_or_none()
        if row is None:
            return None
        return _stored_file(file_bytes(connection, row), media_type_of(row.filename))

    def _track(
        self, connection: Connection, id: str, which: sa.ColumnElement[bool]
    ) -> _StoredFile | None:
        row = isobmff_tracks.c
        mine = (row.file_id == id) & (row.tenant_id == self._tenant_id) & which
        complete = row.completed_at.is_not(None)
        query = sa.select(row.track_id, row.type).where(mine, complete).order_by(row.track_id)
        match = connection.execute(query.limit(1)).one_or_none()
        if match is None:
            return None
        name = track_name(id, match.track_id)
        blob = blobs.used_by(connection, self._tenant_id, TRACKS, name)
        return _stored_file(blob, _KINDS.get(match.type, "video/mp4"))

    def _render(self, connection: Connection, id: str) -> _StoredFile | None:
        mine = (renders.c.id == id) & (renders.c.tenant_id == self._tenant_id)
        media_type = connection.scalar(sa.select(renders.c.media_type).where(mine))
        blob = blobs.used_by(connection, self._tenant_id, FAMILY, result_name(id))
        return None if media_type is None else _stored_file(blob, media_type)


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


def _stored_file(blob: blobs.Blob | None, media_type: str) -> _StoredFile | None:
    return None if blob is None else _StoredFile(blob, media_type)


IDLE_SECONDS: Final = 60.0
"""So long a site stays unpacked for a next slice; the render itself takes it away at its end."""


class ResourceFetcher:
    """An `Outside` over the service's own files and the operator's hosts.

    Attributes:
        network: whether what the page got, or did not get, may be another at another time: a host
            was asked, or would be once its name resolves, it answers, or the operator allows it.
    """

    def __init__(self, context: ServiceContext, tenant_id: str) -> None:
        settings = context.settings
        self.own = OwnFiles(context, tenant_id)
        self._hosts = AllowedHosts(settings.render_hosts, max_bytes=settings.max_outside_bytes)
        self.network = False

    def fetch(self, url: str, headers: Mapping[str, str]) -> Answer:
        """As `Outside.fetch`."""
        # What ends in an error, or without an answer, may end otherwise the next time.
        lasts = False
        try:
            own = self.own.knows(url)
            answer = (self.own if own else self._hosts).fetch(url, headers)
            lasts = own
        except Blocked as blocked:
            lasts = blocked.lasts
            raise
        finally:
            if not lasts:
                self.network = True
        return answer


@record(slots=True, kw_only=True)
class RenderWorkspace(PageSource):
    """A render, ready to be worked on in this process."""

    outside: ResourceFetcher
    folder: Path | None
    digests: dict[str, str | None] = field(default_factory=dict)

    def sha256(self, path: str) -> str | None:
        """Of a file of the site, read once; None where there is none."""
        if path not in self.digests:
            asset = self.site.read(path)
            self.digests[path] = None if asset is None else asset.sha256
        return self.digests[path]

    def reads_the_same(self, site: Mapping[str, str | None], own: Mapping[str, str | None]) -> bool:
        """Whether what a slice was made of is the same here: of the site, and of own files."""
        same = all(self.sha256(path) == sha256 for path, sha256 in site.items())
        return same and self.outside.own.holds(own)


def bounds_of(context: ServiceContext) -> Bounds:
    """What an archive may hold."""
    return Bounds(context.settings.max_unpacked_bytes, context.settings.max_unpacked_files)


@record(slots=True)
class _Entry:
    """A render that this process works on; `users` counts those who wait for it as well."""

    making: threading.Lock = field(default_factory=threading.Lock)
    workspace: RenderWorkspace | None = None
    users: int = 0
    used: float = field(default_factory=time.monotonic)


class Workspaces:
    """What a process has of the renders it works on, and the browsers that wait for a slice."""

    def __init__(self) -> None:
        self.pool = ChildPool()
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}

    @contextmanager
    def opened(
        self, context: ServiceContext, row: Row[Any], check: Callable[[], None]
    ) -> Iterator[RenderWorkspace]:
        """A render's site and what it may ask for, while the context lasts.

        Args:
            row: of the render.
            check: asked before the site is unpacked; what it raises ends it.

        Raises:
            Unprocessable: the bytes of the page have been deleted.
        """
        self._let_go(lambda _, entry: time.monotonic() - entry.used > IDLE_SECONDS)
        with self._lock:
            # Found and counted at once: nobody lets go of it in between.
            entry = self._entries.setdefault(row.id, _Entry())
            entry.users += 1
        try:
            # Others make ready their own renders meanwhile.
            with entry.making:
                if entry.workspace is None:
                    check()
                    entry.workspace = _made(context, row)
            yield entry.workspace
        finally:
            with self._lock:
                entry.users -= 1
                entry.used = time.monotonic()

    def leave(self, render_id: str) -> None:
        """Let go of what this process has of a render, unless it is used."""
        self._let_go(lambda key, _: key == render_id)

    def clear(self, context: ServiceContext, render_id: str) -> None:
        """Remove what any process of this machine has left of a render that is over."""
        self.leave(render_id)
        for left in context.work_left(render_id):
            shutil.rmtree(left, ignore_errors=True)

    def close(self) -> None:
        """Let go of everything that is not used, and end the browsers that wait."""
        self._let_go(lambda *_: True)
        self.pool.close()

    def _let_go(self, which: Callable[[str, _Entry], bool]) -> None:
        with self._lock:
            entries = self._entries.items()
            keys = [key for key, entry in entries if not entry.users and which(key, entry)]
            gone = {key: self._entries.pop(key) for key in keys}
        for key, entry in gone.items():
            self.pool.drop(key)
            if entry.workspace is not None and entry.workspace.folder is not None:
                shutil.rmtree(entry.workspace.folder, ignore_errors=True)


def _made(context: ServiceContext, row: Row[Any]) -> RenderWorkspace:
    outside = ResourceFetcher(context, row.tenant_id)
    settings = context.settings
    limits = Limits(side=settings.max_render_side, pixels=settings.max_render_pixels)
    new = partial(RenderWorkspace, key=row.id, outside=outside, limits=limits)
    with context.database.read() as connection:
        # An archive came as an upload, which uses its bytes under the name of the record.
        name = row.id if row.is_archive else page_name(row.id)
        blob = blobs.used_by(connection, row.tenant_id, FAMILY, name)
    if blob is None:
        raise Unprocessable("the page of the render is gone")
    if not row.is_archive:
        whole = ByteRange(0, blob.byte_size)
        html = b"".join(context.store.read(blob.store_key, whole)) if blob.byte_size else b""
        return new(site=_with_data(Page(html.decode()), row), folder=None)
    # several machines may share the folder, and their processes have one id
    folder = context.work_folder(f"{row.id}.site-{os.getpid()}-{token_hex(4)}")
    try:
        with context.store.local(blob.store_key) as path:
            unpack(path, folder, bounds_of(context))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return new(site=_with_data(Folder(folder), row), folder=folder)


def _with_data(site: Site, row: Row[Any]) -> Site:
    data = wanted_of(row).data
    return site if data is None else WithData(site, data)
