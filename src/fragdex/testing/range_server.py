"""A real HTTP server on the loopback interface that answers byte ranges, rightly or wrongly.

It stands in for the servers that a reader meets: good ones, old ones, overloaded and broken ones.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import quote, unquote

from fragdex.testing.range_answers import Answer, Faults, Request, answer_to

__all__ = ["Faults", "RangeServer", "Request"]

_PATH = "/content"
_PIECE = 64 * 1024  # so that `sent` tells how far an answer came before its reader left


class RangeServer:
    """Serve content over HTTP on 127.0.0.1, in threads of this process, with faults on demand.

    `content` is bytes, served at `url`, or a mapping of paths to bytes, each at `at(path)`. GET
    and HEAD; one range or several, If-Range and If-None-Match as in RFC 9110. `requests` holds
    every request so far, `most_at_once` how many were ever under way together. `faults` and
    `content` may be set anew at any time; where `faults_for` is set, it says the faults of each
    request. A context manager: the port is open from entering to leaving.

    >>> from fragdex.sources import open_source
    >>> from fragdex.byterange import ByteRange
    >>> with RangeServer(b"abcdef") as server, open_source(server.url) as source:
    ...     source.read(ByteRange(2, 4)), server.requests[0].range, server.requests[0].status
    (b'cd', 'bytes=2-3', 206)
    """

    def __init__(
        self, content: bytes | Mapping[str, bytes], *, faults: Faults | None = None
    ) -> None:
        self.content = content
        self.faults = faults or Faults()
        self.faults_for: Callable[[Request], Faults] | None = None
        self.requests: list[Request] = []
        self._lock = threading.Lock()
        self._under_way = 0
        self.most_at_once = 0
        self._stopping = threading.Event()
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The URL of the content, or of the first path of a mapping.

        >>> with RangeServer(b"") as server:
        ...     server.url.startswith("http://127.0.0.1:")
        True
        """
        return self.at(_PATH if isinstance(self.content, bytes) else next(iter(self.content)))

    def at(self, path: str) -> str:
        """Return the URL of a path, which need not exist.

        >>> with RangeServer({"a b.mp4": b""}) as server:
        ...     server.at("a b.mp4").partition("/a")[2]
        '%20b.mp4'
        """
        if self._server is None:
            raise RuntimeError("this server is not running: use it in a with statement")
        return f"http://127.0.0.1:{self._server.server_address[1]}/{quote(path.lstrip('/'))}"

    @property
    def bytes_sent(self) -> int:
        """Body bytes of all answers so far.

        >>> RangeServer(b"abc").bytes_sent
        0
        """
        return sum(request.sent for request in self.requests)

    def __enter__(self) -> Self:
        self._stopping.clear()
        self._server = _Server(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        assert self._thread is not None
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._server = self._thread = None

    # for the handler, which runs in a thread of its own for each connection

    def _note(self, request: Request) -> int:
        with self._lock:
            self.requests.append(request)
            return len(self.requests) - 1

    def _begin(self) -> int:
        """Count a request that is under way; returns how many are."""
        with self._lock:
            self._under_way += 1
            self.most_at_once = max(self.most_at_once, self._under_way)
            return self._under_way

    def _end(self) -> None:
        with self._lock:
            self._under_way -= 1

    def _find(self, path: str) -> bytes | None:
        name = unquote(path)
        if isinstance(self.content, bytes):
            return self.content if name == _PATH else None
        found = self.content.get(name)
        return self.content.get(name.lstrip("/")) if found is None else found

    def _wait(self, seconds: float) -> None:
        self._stopping.wait(seconds)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, owner: RangeServer) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: readers that leave in the middle are what this server is for."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 60.0

    def do_GET(self) -> None:
        self._answer(head=False)

    def do_HEAD(self) -> None:
        self._answer(head=True)

    def log_message(self, format: str, *arguments: object) -> None:
        pass  # the requests are recorded instead

    def _answer(self, *, head: bool) -> None:
        under_way = self.server.owner._begin()
        try:
            self._answer_counted(under_way, head=head)
        finally:
            self.server.owner._end()

    def _answer_counted(self, under_way: int, *, head: bool) -> None:
        owner = self.server.owner
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers.get("range"), headers)
        number = owner._note(request)
        faults = owner.faults_for(request) if owner.faults_for else owner.faults
        faults = faults if faults.applies(number) else Faults()
        if faults.latency_s:
            owner._wait(faults.latency_s)
        if faults.drop_connections:
            self.close_connection = True
            return
        if faults.at_once is not None and under_way > faults.at_once:
            after = {} if faults.retry_after is None else {"Retry-After": faults.retry_after}
            answer = Answer(503, fields=after)
        else:
            answer = answer_to(request, number, owner._find, faults)
        request.status = answer.status
        if faults.http_1_0:
            # an old server: the end of the connection is the end of the body
            self.protocol_version = "HTTP/1.0"
            self.close_connection = True
        else:
            answer.fields["Content-Length"] = str(len(answer.body))
        self.send_response(answer.status)
        for name, value in answer.fields.items():
            self.send_header(name, value)
        self.end_headers()
        if not head:
            self._send(answer.body, request, faults)

    def _send(self, body: bytes, request: Request, faults: Faults) -> None:
        left = memoryview(body)
        if faults.short_answers is not None and faults.short_answers < len(left):
            left = left[: faults.short_answers]
            self.close_connection = True
        size, pause = faults.drip or (_PIECE, 0.0)
        while left and not self.server.owner._stopping.is_set():
            piece = left[:size]
            # counted before, so that who has read the answer finds it counted
            request.sent += len(piece)
            try:
                self.wfile.write(piece)
            except OSError:
                request.sent -= len(piece)
                self.close_connection = True
                return
            left = left[size:]
            if pause and left:
                self.server.owner._wait(pause)
