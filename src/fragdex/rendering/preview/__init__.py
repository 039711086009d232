"""A video shown before it is made, by a server for the person at this machine alone.

Frames are drawn as they are requested, by a browser that is kept with what it drew before.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from fragdex.errors import BrowserGone, FragdexError, PageFailed
from fragdex.rendering.browser.model import Notes, PageView, missing_fonts
from fragdex.rendering.outputs import Film, Still
from fragdex.rendering.pool import PageSource, RenderProcess
from fragdex.rendering.render import render
from fragdex.rendering.site import Folder, WithData
from fragdex.rendering.spec import RenderSpec, frames_of, settled

ENDLESS_MS: Final = 10_000
"""So much is shown of a page that does not say how long it lasts."""

_LOSSLESS: Final = Still("png", compression=1)
_CACHE_BYTES: Final = 128 << 20
# Who steps back once does so again: these frames before it are drawn on the way.
_BEFORE: Final = 12
# A page that renders itself gets these, too.
_AHEAD: Final = 60
_TEXTS: Final = (".html", ".htm", ".css", ".js", ".mjs", ".json", ".svg", ".vtt")
_MOST_FILES: Final = 1000


class _Stale(Exception):
    """The page changed, or nobody looks any more."""


class FilmPreview:
    """The video of one page, drawn as it is requested, and again when a file of its site changes.

    Args:
        name: of the page, for people.
        page: where it is; of a `Folder`, changes are seen.
        spec: the video.
    """

    def __init__(self, name: str, page: PageSource, spec: RenderSpec) -> None:
        self._name, self._page, self._spec = name, page, spec
        self._lock = threading.Lock()
        self._worker = ThreadPoolExecutor(1, "preview")
        self._listener = ThreadPoolExecutor(1, "sound")
        self._folder = tempfile.TemporaryDirectory(prefix="fragdex-")
        self._child: RenderProcess | None = None
        self._pictures: OrderedDict[int, bytes] = OrderedDict()
        self._closed = False
        self._version = 0
        self._seen: dict[str, tuple[int, int] | None] = {}
        self._reads: set[str] = set()
        self._begin()

    def _begin(self) -> None:
        """Load the page, for the first time or again."""
        with self._lock:
            self._version += 1
            self._view, self._frames = PageView(), range(0)
            self._status = "loading"
            self._error: str | None = None
            self._sound_status, self._sound = "loading", b""
            self._notes, self._endless = Notes(), False
            version = self._version
        self._seen = self._stamps()
        self._worker.submit(self._load, version)

    def changed(self) -> bool:
        """Load the page again where a file of its site changed; whether one did."""
        stamps = self._stamps()
        if stamps == self._seen:
            return False
        # files that were read for the first time have not changed by that
        common = stamps.keys() & self._seen.keys()
        differs = any(stamps[path] != self._seen[path] for path in common)
        self._seen = stamps
        if differs:
            self._begin()
        return differs

    def _stamps(self) -> dict[str, tuple[int, int] | None]:
        """When files were written, and their size: what the page read, and the texts next to it."""
        site = self._page.site
        if isinstance(site, WithData):
            site = site.site
        if not isinstance(site, Folder):
            return {}
        names = set(self._reads)
        with suppress(OSError), os.scandir(site.path) as entries:
            for entry, _ in zip(entries, range(_MOST_FILES), strict=False):
                if Path(entry.name).suffix.lower() in _TEXTS:
                    names.add(entry.name)
        stamps: dict[str, tuple[int, int] | None] = {}
        for name in names:
            try:
                stat = (site.path / name).stat()
                stamps[name] = stat.st_mtime_ns, stat.st_size
            except (OSError, ValueError):
                stamps[name] = None
        return stamps

    def state(self) -> dict[str, Any]:
        """What there is to see, as JSON."""
        with self._lock:
            page_notes = self._notes
            notes = [("blocked", f"{one.url}: {one.reason}") for one in page_notes.blocked]
            for kind in ("incomplete", "refused", "console", "browser"):
                notes += [(kind, line) for line in getattr(page_notes, kind)]
            notes += [("fonts", line) for line in missing_fonts(page_notes.glyphs)]
            width, height = self._view.frame
            return {
                "version": self._version,
                "name": self._name,
                "status": self._status,
                "error": self._error,
                "width": width,
                "height": height,
                "fps": float(self._view.fps),
                "first": self._frames.start,
                "frames": len(self._frames),
                "endless": self._endless,
                "sound": self._sound_status,
                "notes": [{"kind": kind, "text": line} for kind, line in notes],
            }

    def frame(self, i: int, version: int) -> bytes:
        """Frame i as PNG.

        Args:
            version: of the page, as `state` tells it.

        Raises:
            FragdexError: why there is none.
        """
        with self._lock:
            if version == self._version and i in self._pictures:
                self._pictures.move_to_end(i)
                return self._pictures[i]
        task: Future[bytes] = self._worker.submit(self._drawn, i, version)
        return task.result()

    def sound(self) -> bytes:
        """The sound of the video as WAV; nothing while it is made, and where there is none."""
        with self._lock:
            return self._sound

    def close(self) -> None:
        """End the browsers."""
        self._closed = True
        with self._lock:
            self._version += 1
        self._worker.submit(self._end)
        self._worker.shutdown(cancel_futures=False)
        self._listener.shutdown(cancel_futures=True)
        self._folder.cleanup()

    # ---- within the worker

    def _check(self, version: int) -> None:
        if version != self._version or self._closed:
            raise _Stale

    def _load(self, version: int) -> None:
        self._end()
        with self._lock:
            self._pictures.clear()
        with self._failing(version):
            child = self._child_of(version)
            view, duration_ms, _ = settled(
                self._spec, self._page.limits,
                lambda view: child.look(view, check=lambda: self._check(version)),
            )  # fmt: skip
            frames = frames_of(self._spec, duration_ms or ENDLESS_MS)
            with self._lock:
                self._check(version)
                self._view, self._frames, self._endless = view, frames, duration_ms is None
            self._draw(frames.start, version)
            with self._lock:
                self._check(version)
                self._status = "ready"
            if not self._closed:
                self._listener.submit(self._make_sound, version, frames)

    def _drawn(self, i: int, version: int) -> bytes:
        with self._lock:
            if version != self._version or i not in self._frames:
                raise FragdexError("the page has changed, or has no such frame")
            if i in self._pictures:
                return self._pictures[i]
        with self._failing(version):
            at = self._child.at if self._child is not None else None
            if at is not None and at[1] > i:
                for before in range(max(self._frames.start, i - _BEFORE), i):
                    self._draw(before, version)
            return self._draw(i, version)
        raise FragdexError(self._error or "the page has changed")

    def _draw(self, i: int, version: int) -> bytes:
        try:
            return self._draw_once(i, version)
        except BrowserGone:
            self._end()
            return self._draw_once(i, version)

    def _draw_once(self, i: int, version: int) -> bytes:
        drawn = self._child_of(version).draw(
            self._view, range(i, i + 1), Path(self._folder.name), still=_LOSSLESS,
            check=lambda: self._check(version), ahead=min(_AHEAD, self._frames.stop - i - 1),
        )  # fmt: skip
        picture = Path(drawn.path).read_bytes()
        with self._lock:
            self._notes.add(drawn.notes)
            self._reads |= drawn.reads.keys() - {""}
            self._pictures[i] = picture
            size = sum(map(len, self._pictures.values()))
            while size > _CACHE_BYTES and len(self._pictures) > 1:
                _, old = self._pictures.popitem(last=False)
                size -= len(old)
        return picture

    def _child_of(self, version: int) -> RenderProcess:
        self._check(version)
        if self._child is None:
            page = self._page
            self._child = RenderProcess(page.site, outside=page.outside, limits=page.limits)
        return self._child

    @contextmanager
    def _failing(self, version: int) -> Iterator[None]:
        """Tell why the page fails; what was there before stays to be seen."""
        try:
            yield
        except _Stale:
            self._end()
        except FragdexError as error:
            self._end()
            with self._lock:
                if version == self._version:
                    self._status, self._error = "failed", str(error)
                    if self._sound_status == "loading":
                        self._sound_status = "none"
                    if isinstance(error, PageFailed):
                        self._notes.add(Notes.of_json(error.more))

    def _end(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None

    # ---- within the listener

    def _make_sound(self, version: int, frames: range) -> None:
        """Make the sound of the video, in a browser of its own."""

        def progress(*_: int) -> None:
            self._check(version)

        spec = replace(
            self._spec, film=Film("wav"),
            duration_ms=self._spec.duration_ms or (ENDLESS_MS if self._endless else None),
        )  # fmt: skip
        status, data = "none", b""
        path = Path(self._folder.name, "sound.wav")
        try:
            rendered = render(
                self._page.site, spec, path, jobs=1, outside=self._page.outside,
                limits=self._page.limits, progress=progress,
            )  # fmt: skip
            if rendered.sound:
                status, data = "ready", path.read_bytes()
        except _Stale:
            return
        except (FragdexError, OSError) as error:
            status = "failed"
            with self._lock:
                self._notes.say("refused", f"the sound cannot be made: {error}")
        with self._lock:
            if version == self._version:
                self._sound_status, self._sound = status, data


_FILES: Final = {
    "": ("preview.html", "text/html; charset=utf-8"),
    "preview.css": ("preview.css", "text/css; charset=utf-8"),
    "preview.js": ("preview.js", "text/javascript; charset=utf-8"),
}
_FRAME: Final = re.compile(r"frames/(\d{1,9})\.png")
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; img-src 'self' blob: data:; style-src 'self'; "
    "script-src 'self'; connect-src 'self'; media-src blob:; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_WATCH_SECONDS: Final = 0.5
_IDLE_SECONDS: Final = 60.0
_OURS: Final = ("same-origin", "none")


class LocalServer(ThreadingHTTPServer):
    """Shows a preview on loopback, below an address that nobody can guess.

    Requests of other sites are refused: by that address, by `Host` (a name that leads here by DNS
    is not ours) and by `Sec-Fetch-Site`.

    Args:
        preview: what is shown.
        port: 0: any free one.
    """

    daemon_threads = True

    def __init__(self, preview: FilmPreview, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.preview = preview
        self.token = secrets.token_urlsafe(18)
        self._ended = threading.Event()

    @property
    def url(self) -> str:
        """Where it is, with its secret."""
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"

    def run(self) -> None:
        """Answer until interrupted; the preview is closed then."""
        watcher = threading.Thread(target=self._watch, name="watch", daemon=True)
        watcher.start()
        try:
            self.serve_forever(poll_interval=0.1)
        finally:
            self._ended.set()
            self.server_close()
            self.preview.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that goes away in the middle of an answer."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def _watch(self) -> None:
        while not self._ended.wait(_WATCH_SECONDS):
            self.preview.changed()

    def is_ours(self, host: str | None) -> bool:
        """Whether a request was sent to this address by name."""
        return host in (f"127.0.0.1:{self.server_port}", f"localhost:{self.server_port}")


class _Handler(BaseHTTPRequestHandler):
    server: LocalServer
    protocol_version = "HTTP/1.1"
    server_version = "fragdex"
    sys_version = ""
    timeout = _IDLE_SECONDS

    def do_GET(self) -> None:
        """Answer the one person who looks."""
        parts = urlsplit(self.path)
        token, _, path = parts.path.lstrip("/").partition("/")
        is_ours = self.server.is_ours(self.headers.get("Host"))
        if not is_ours or self.headers.get("Sec-Fetch-Site", "none") not in _OURS:
            self._say(HTTPStatus.FORBIDDEN, "this preview is for the person at this machine")
            return
        if not secrets.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode()):
            self._say(HTTPStatus.NOT_FOUND, "there is nothing here")
            return
        preview = self.server.preview
        frame = _FRAME.fullmatch(path)
        if path in _FILES:
            name, kind = _FILES[path]
            self._give(kind, resources.files(__package__).joinpath(name).read_bytes())
        elif path == "state":
            self._give("application/json", json.dumps(preview.state()).encode())
        elif path == "sound.wav":
            self._give("audio/wav", preview.sound())
        elif frame is not None:
            version = parse_qs(parts.query).get("version", ["0"])[0]
            try:
                picture = preview.frame(int(frame[1]), int(version) if version.isdecimal() else 0)
            except FragdexError as error:
                self._say(HTTPStatus.CONFLICT, str(error))
            else:
                self._give("image/png", picture)
        else:
            self._say(HTTPStatus.NOT_FOUND, "there is nothing here")

    def _say(self, status: HTTPStatus, text: str) -> None:
        self._give("text/plain; charset=utf-8", text.encode(), status)

    def _give(self, kind: str, body: bytes, status: HTTPStatus = HTTPStatus.OK) -> None:
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing: the terminal is the person's."""
