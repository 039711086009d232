"""What a process of the service needs to render one render: its site, and what it may ask for.

A packed site is unpacked once by every process that works on it. Browsers stay warm between the
slices of a render, and all of it goes when the render is over.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from sqlalchemy.engine import Row

from fragdex.byterange import ByteRange
from fragdex.errors import Unprocessable
from fragdex.rendering.archives import Bounds, unpack
from fragdex.rendering.browser.model import Limits
from fragdex.rendering.pool import ChildPool, PageSource
from fragdex.rendering.site import Answer, Blocked, Folder, Page, Site, WithData
from fragdex.rendering.web import AllowedHosts
from fragdex.service.context import ServiceContext
from fragdex.service.records import blobs
from fragdex.service.renders.own_files import OwnFiles
from fragdex.service.renders.records import FAMILY, page_name, wanted_of

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


@dataclass(slots=True, kw_only=True)
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


@dataclass(slots=True)
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
            Unprocessable: the bytes of the page are not here any more.
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
