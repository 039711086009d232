"""A real HTTP server on the loopback interface that answers byte ranges, rightly or wrongly.

It stands in for the servers that a reader meets: good ones, old ones, overloaded and broken ones.
"""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal, Self
from urllib.parse import parse_qs, quote, unquote, urlsplit

from fragdex.byterange import ByteRange, content_range, parse_range
from fragdex.digest import md5
from fragdex.record import record

LINE = "a-line-between-parts"
"""The boundary of answers of several ranges."""


@record(frozen=True, slots=True, kw_only=True)
class Faults:
    """What a RangeServer does wrong; without arguments, nothing.

    The faults hold from the request number `after` (counted from 0) on, for `times` requests
    (None: for ever). Numbers of bytes are of the body.

    Attributes:
        ignore_range: answer 200 with everything, as if there were no Range field.
        single_ranges: likewise to requests for several ranges, as many object stores do; with
            `several_status` such requests get that status instead.
        several_damaged: cut so many bytes off the end of an answer of several ranges.
        at_once: answer 503 to a request where so many are under way already.
        short_answers: break the connection after so many bytes of each body.
        partial_answers: send at most so many bytes of what was asked, and say so (206).
        misplaced: answer with a range that starts so many bytes later than asked.
        no_content_range: leave out Content-Range from 206.
        unknown_total: write `*` for the total in Content-Range.
        changing_etag: give another ETag with each answer.
        changing_length: serve content one byte longer with each answer.
        etag: "strong", "weak" or "none".
        status: answer with this status and no content.
        status_once: likewise, but only to the first request.
        retry_after: the value of a Retry-After field that goes with `status`.
        drop_connections: close the connection without an answer.
        latency_s: seconds to wait before each answer.
        drip: (bytes, seconds): send so many bytes at a time, with a pause after each.
        redirects: answer so often 302 before the content comes.
        redirect_to: send redirects to this URL instead, a server elsewhere.
        gzip: send the body as gzip, and say so in Content-Encoding.
        http_1_0: speak HTTP/1.0, a connection for each answer, its end the end of the body.

    >>> Faults(ignore_range=True).applies(0), Faults(status=503, times=2).applies(2)
    (True, False)
    """

    ignore_range: bool = False
    single_ranges: bool = False
    several_status: int | None = None
    several_damaged: int = 0
    at_once: int | None = None
    short_answers: int | None = None
    partial_answers: int | None = None
    misplaced: int = 0
    no_content_range: bool = False
    unknown_total: bool = False
    changing_etag: bool = False
    changing_length: bool = False
    etag: Literal["strong", "weak", "none"] = "strong"
    status: int | None = None
    status_once: int | None = None
    retry_after: str | None = None
    drop_connections: bool = False
    latency_s: float = 0.0
    drip: tuple[int, float] | None = None
    redirects: int = 0
    redirect_to: str | None = None
    gzip: bool = False
    http_1_0: bool = False
    after: int = 0
    times: int | None = None

    def applies(self, number: int) -> bool:
        """Tell whether the request of this number (from 0) meets the faults.

        >>> [Faults(after=1, times=1).applies(number) for number in range(3)]
        [False, True, False]
        """
        return self.after <= number and (self.times is None or number < self.after + self.times)


@record(slots=True)
class Request:
    """One request that a RangeServer got, and what it answered.

    `range` is the value of the Range field or None, `status` 0 where no answer was given, `sent`
    the number of body bytes handed to the network. Names in `headers` are lower-case.
    """

    method: str
    path: str
    range: str | None
    headers: Mapping[str, str]
    status: int = 0
    sent: int = 0


@record(slots=True)
class Answer:
    """An answer before it is sent: status, body, header fields."""

    status: int
    body: bytes = b""
    fields: dict[str, str] = field(default_factory=dict)


@lru_cache(maxsize=2)
def _digest(content: bytes) -> str:
    """Hashed once for all requests; a large file takes longer than its answers."""
    return str(md5(content))


def answer_to(
    request: Request, number: int, find: Callable[[str], bytes | None], faults: Faults
) -> Answer:
    """Answer the request of this number (from 0); `find` gives the content of a path."""
    status = faults.status_once if number == faults.after and faults.status_once else faults.status
    if status is not None:
        return Answer(
            status, fields={"Retry-After": faults.retry_after} if faults.retry_after else {}
        )
    url = urlsplit(request.path)
    hop = int(parse_qs(url.query).get("hop", ["0"])[0])
    if hop < faults.redirects:
        target = faults.redirect_to or f"{url.path}?hop={hop + 1}"
        return Answer(302, fields={"Location": target})
    content = find(url.path)
    if content is None:
        return Answer(404, b"there is nothing here\n", {"Content-Type": "text/plain"})
    if faults.changing_length:
        content += bytes(number)
    fields = {"Content-Type": "application/octet-stream"}
    tag = None
    if faults.etag != "none":
        tag = f'"{_digest(content)}{number if faults.changing_etag else ""}"'
        tag = tag if faults.etag == "strong" else f"W/{tag}"
        fields["ETag"] = tag
    if tag is not None and request.headers.get("if-none-match") == tag:
        return Answer(304, fields=fields)
    if faults.gzip:
        content = gzip.compress(content, mtime=0)
        fields["Content-Encoding"] = "gzip"
    if not faults.ignore_range:
        fields["Accept-Ranges"] = "bytes"
        # If-Range is compared strongly (RFC 9110, 13.1.5): a weak tag never matches
        condition = request.headers.get("if-range")
        if request.method == "GET" and (
            condition is None or (condition == tag and not condition.startswith("W/"))
        ):
            partial = _partial(request, content, fields, faults)
            if partial is not None:
                return partial
    return Answer(200, content, fields)


def _partial(
    request: Request, content: bytes, fields: dict[str, str], faults: Faults
) -> Answer | None:
    several = "," in (request.range or "")
    if several and faults.several_status is not None:
        return Answer(faults.several_status)
    answer = parse_range(request.range, len(content), max_ranges=1 if faults.single_ranges else 64)
    total = None if faults.unknown_total else len(content)
    if answer.status == 200:
        return None
    if answer.status == 416:
        if total is not None:
            fields["Content-Range"] = content_range(None, total)
        return Answer(416, fields=fields)
    if len(answer.ranges) > 1:
        return _several(answer.ranges, content, total, fields, faults)
    (part,) = answer.ranges
    if faults.partial_answers is not None:
        part = ByteRange(part.start, min(part.stop, part.start + faults.partial_answers))
    if faults.misplaced:
        start = min(part.start + faults.misplaced, len(content) - 1)
        part = ByteRange(start, min(start + part.size, len(content)))
    if not faults.no_content_range:
        fields["Content-Range"] = content_range(part, total)
    return Answer(206, content[part.start : part.stop], fields)


def _several(
    ranges: Sequence[ByteRange],
    content: bytes,
    total: int | None,
    fields: dict[str, str],
    faults: Faults,
) -> Answer:
    """multipart/byteranges (RFC 9110, 14.6)."""
    kind, fields["Content-Type"] = fields["Content-Type"], f"multipart/byteranges; boundary={LINE}"
    body = bytearray()
    for part in ranges:
        start = min(part.start + faults.misplaced, len(content) - 1)
        shown = ByteRange(start, min(start + part.size, len(content)))
        head = f"\r\n--{LINE}\r\nContent-Type: {kind}\r\n"
        if not faults.no_content_range:
            head += f"Content-Range: {content_range(shown, total)}\r\n"
        body += head.encode() + b"\r\n" + content[shown.start : shown.stop]
    body += f"\r\n--{LINE}--\r\n".encode()
    return Answer(206, bytes(body[: len(body) - faults.several_damaged]), fields)


_PATH = "/content"
_PIECE = 64 * 1024  # so that `sent` tells how far an answer came before its reader left


class RangeServer:
    """Serve content over HTTP on 127.0.0.1, in threads of this process, with faults on demand.

    `content` is bytes, served at `url`, or a mapping of paths to bytes, each at `at(path)`. GET
    and HEAD; one range or several, If-Range and If-None-Match as in RFC 9110. `requests` holds
    every request so far, `most_at_once` how many were ever under way together. `faults` and
    `content` may be replaced at any time; `faults_for`, if set, returns the faults of each request.
    A context manager: the port is open from entering to leaving.

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

    def __exit__(self, *_: object) -> None:
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
        content = self.content.get(name)
        return self.content.get(name.lstrip("/")) if content is None else content

    def _wait(self, seconds: float) -> None:
        self._stopping.wait(seconds)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    # As real servers: beyond five at once, Python's would let new connections wait for a second.
    request_queue_size = 128

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
