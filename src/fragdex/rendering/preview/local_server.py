"""A server for the person at this machine alone: it shows a film before it is made."""

from __future__ import annotations

import json
import re
import secrets
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from fragdex.errors import FragdexError
from fragdex.rendering.preview.film_preview import FilmPreview

__all__ = ["LocalServer"]

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
                found = preview.frame(int(frame[1]), int(version) if version.isdecimal() else 0)
            except FragdexError as error:
                self._say(HTTPStatus.CONFLICT, str(error))
            else:
                self._give("image/png", found)
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
