"""What a process of the service needs to render one render: its site, and what it may ask for.

A packed site is unpacked once by every process that works on it. Browsers stay warm between the
slices of a render, and all of it goes when the render is over.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from sqlalchemy.engine import Row

from fragdex.byterange import ByteRange
from fragdex.service.errors import Unprocessable
from fragdex.service.house import House
from fragdex.service.records import blobs
from fragdex.service.renders.archives import Bounds, unpack
from fragdex.service.renders.browser.model import Limits
from fragdex.service.renders.hosts import AllowedHosts
from fragdex.service.renders.outside import Answer
from fragdex.service.renders.own_files import OwnFiles
from fragdex.service.renders.running import Warm
from fragdex.service.renders.site import Folder, Page, Site

__all__ = ["Stand", "bounds_of", "busy", "clear", "leave", "standing", "warm"]

IDLE_SECONDS: Final = 60.0
"""So long a site stays unpacked for a next slice; the render itself takes it away at its end."""

_POLL_SECONDS: Final = 0.25

_lock = threading.Lock()
_stands: dict[tuple[Path, str], Stand] = {}
_making: dict[tuple[Path, str], threading.Lock] = {}
_busy: threading.Semaphore | None = None
_warm = Warm()
atexit.register(_warm.close)


class Asked:
    """An `Outside` over the service's own files and the operator's hosts.

    Attributes:
        network: whether a host was asked: nobody knows whether it answers the same again.
    """

    def __init__(self, house: House, tenant_id: str) -> None:
        settings = house.settings
        self.own = OwnFiles(house, tenant_id)
        self._hosts = AllowedHosts(settings.render_hosts, max_bytes=settings.max_outside_bytes)
        self.network = False

    def fetch(self, url: str, headers: Mapping[str, str]) -> Answer:
        """As `Outside.fetch`."""
        if self.own.knows(url):
            return self.own.fetch(url, headers)
        answer = self._hosts.fetch(url, headers)
        self.network = True
        return answer


@dataclass(slots=True)
class Stand:
    """A render, ready to be worked on in this process."""

    key: str
    site: Site
    asked: Asked
    limits: Limits
    folder: Path | None
    users: int = 0
    used: float = field(default_factory=time.monotonic)
    digests: dict[str, bytes | None] = field(default_factory=dict)

    def sha256(self, path: str) -> bytes | None:
        """Of a file of the site, read once; None where there is none."""
        if path not in self.digests:
            asset = self.site.read(path)
            self.digests[path] = None if asset is None else asset.sha256
        return self.digests[path]

    def reads_the_same(
        self, site: Mapping[str, bytes | None], own: Mapping[str, bytes | None]
    ) -> bool:
        """Whether what a slice was made of is the same here: of the site, and of own files."""
        same = all(self.sha256(path) == sha256 for path, sha256 in site.items())
        return same and self.asked.own.holds(own)


def bounds_of(house: House) -> Bounds:
    """What an archive may hold."""
    return Bounds(house.settings.max_unpacked_bytes, house.settings.max_unpacked_files)


def warm() -> Warm:
    """The browsers of this process that wait for their next slice."""
    return _warm


@contextmanager
def standing(house: House, row: Row[Any], check: Callable[[], None]) -> Iterator[Stand]:
    """A render's site and what it may ask for, while the context lasts.

    Args:
        row: of the render.
        check: asked before the site is unpacked; what it raises ends it.

    Raises:
        Unprocessable: the bytes of the page are not here any more.
    """
    place = (house.settings.data, row.id)
    _let_go(lambda stand: time.monotonic() - stand.used > IDLE_SECONDS)
    with _lock:
        making = _making.setdefault(place, threading.Lock())
    # Others make ready their own renders meanwhile.
    with making:
        with _lock:
            stand = _stands.get(place)
        if stand is None:
            check()
            stand = _made(house, row)
        with _lock:
            stand = _stands.setdefault(place, stand)
            stand.users += 1
    try:
        yield stand
    finally:
        with _lock:
            stand.users -= 1
            stand.used = time.monotonic()


@contextmanager
def busy(house: House, check: Callable[[], None]) -> Iterator[None]:
    """Wait until this process may do one more piece of work that is no slice.

    Many renders wait for their slices at once; as many as there are workers of jobs open a page or
    join a film. Slices have a queue of their own.
    """
    global _busy  # noqa: PLW0603 — of the process, as large as its first house says
    with _lock:
        if _busy is None:
            _busy = threading.Semaphore(max(1, house.settings.job_workers))
        seats = _busy
    while not seats.acquire(timeout=_POLL_SECONDS):
        check()
    try:
        yield
    finally:
        seats.release()


def leave(render_id: str) -> None:
    """Let go of what this process has of a render, unless it is used."""
    _let_go(lambda stand: stand.key == render_id)


def clear(house: House, render_id: str) -> None:
    """Remove what any process of this machine has left of a render that is over."""
    leave(render_id)
    for left in house.work_left(render_id):
        shutil.rmtree(left, ignore_errors=True)


def _let_go(which: Callable[[Stand], bool]) -> None:
    with _lock:
        places = [place for place, stand in _stands.items() if not stand.users and which(stand)]
        gone = [_stands.pop(place) for place in places]
        for place in places:
            _making.pop(place, None)
    for stand in gone:
        _warm.drop(stand.key)
        if stand.folder is not None:
            shutil.rmtree(stand.folder, ignore_errors=True)


def _made(house: House, row: Row[Any]) -> Stand:
    asked = Asked(house, row.tenant_id)
    settings = house.settings
    limits = Limits(side=settings.max_render_side, pixels=settings.max_render_pixels)
    new = partial(Stand, row.id, asked=asked, limits=limits)
    with house.database.read() as connection:
        blob = blobs.find(connection, row.tenant_id, row.page_md5)
    if blob is None:
        raise Unprocessable("the page of the render is not here any more")
    if not row.is_archive:
        whole = ByteRange(0, blob.byte_size)
        html = b"".join(house.store.read(blob.store_key, whole)) if blob.byte_size else b""
        return new(site=Page(html.decode()), folder=None)
    folder = house.work_folder(f"{row.id}.site-{os.getpid()}-{_mark(house)}")
    try:
        with house.store.local(blob.store_key) as path:
            unpack(path, folder, bounds_of(house))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return new(site=Folder(folder), folder=folder)


def _mark(house: House) -> str:
    """Tells processes of several machines apart that share a folder and have one id."""
    return hashlib.sha256(f"{os.getpid()}{time.time_ns()}".encode()).hexdigest()[:8]
