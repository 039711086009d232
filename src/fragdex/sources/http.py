"""Sources over HTTP: range requests that are checked, resumed, limited and never trusted.

One read is one request (RFC 9110, 14.2), unless its answer breaks off or is a redirect; several
small ranges are requested in one request where the server answers that. What an answer means is
decided in `answers`; here it is requested, waited for and tried again.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fragdex.byterange import ByteRange, coalesce
from fragdex.errors import SourceError, SourceUnavailable
from fragdex.sources.answers import (
    PART_HEAD,
    RETRIED,
    BodyPart,
    BrokenAnswer,
    FirstAnswer,
    PastTheEnd,
    boundary_of,
    length_of,
    parts_of,
    pieces_of,
)
from fragdex.sources.base import CONNECTIONS, PIECE_SIZE, ReadBatch, Source
from fragdex.sources.tls import tls_when_needed

if TYPE_CHECKING:
    import httpx


MAX_REDIRECTS = 10
"""Redirects followed for one request; browsers stop at 20, and no CDN needs more than three."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})

# what belongs to one request and is not carried to the next
_OWN_FIELDS = frozenset({"range", "if-range", "host", "accept-encoding"})


class Requests:
    """GETs one URL, from where its redirects led before.

    Args:
        timeout: seconds that each step of a request may take.
        headers: of every request.
        client: asked in place of our own; it is not closed, and not woken.
        over: whether reads are ended, so that new connections are woken at once.

    Attributes:
        shown: the URL as messages have it: passwords and signatures have no place there.

    Raises:
        SourceError: it is not a URL.
    """

    def __init__(
        self,
        url: str,
        timeout: float,
        headers: Mapping[str, str],
        client: httpx.Client | None,
        over: Callable[[], bool],
    ) -> None:
        import httpx

        self._httpx = httpx
        try:
            self._url = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise SourceError(f"this is not a URL: {error}") from error
        self.shown = str(
            self._url.copy_with(username=None, password=None, query=None, fragment=None)
        )
        self._timeout, self._headers = timeout, dict(headers)
        self._mine = client is None
        self._client = client or client_for(timeout)
        self._landed: httpx.Request | None = None  # where redirects ended
        self._over = over
        self._lock = threading.Lock()
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def send(self, own: Mapping[str, str], count: Callable[[], None]) -> httpx.Response:
        """The answer at the end of the redirects; its body is not read yet.

        Args:
            own: fields of this request alone.
            count: called before each request; what it raises ends them.

        Raises:
            SourceError: it is redirected too often.
        """
        landed = self._landed
        response = self._try(landed, own, count)
        status = response.status_code
        if landed is not None and 400 <= status < 500 and status not in RETRIED | {416}:
            # what a redirect led to may have been lent for a while only: ask where it began
            response.close()
            self._landed = None
            response = self._try(None, own, count)
        for _ in range(MAX_REDIRECTS):
            if response.status_code not in _REDIRECTS or response.next_request is None:
                return response
            response.close()
            self._landed = response.next_request
            response = self._try(self._landed, own, count)
        response.close()
        raise SourceError(
            f"{self.shown} is redirected too often",
            expected=f"at most {MAX_REDIRECTS} redirects",
            found="one more",
        )

    def interrupt(self) -> None:
        """Wake reads that wait for their server; a client that was given is left alone."""
        with self._lock:
            for one in self._sockets:
                _shut(one)

    def close(self) -> None:
        """Close the connections, unless they belong to a client that was given."""
        if self._mine:
            self._client.close()

    def _try(
        self, landed: httpx.Request | None, own: Mapping[str, str], count: Callable[[], None]
    ) -> httpx.Response:
        count()
        extensions: dict[str, Any] = {"trace": self._note_connection} if self._mine else {}
        options: dict[str, Any] = {"stream": True, "follow_redirects": False}
        if landed is None:
            request = self._client.build_request(
                "GET",
                self._url,
                headers={**self._headers, **own},
                timeout=self._timeout,
                extensions=extensions,
            )
        else:
            # the client took credentials out of a redirect to elsewhere; they stay out
            fields = {k: v for k, v in landed.headers.items() if k.lower() not in _OWN_FIELDS}
            request = self._httpx.Request(
                "GET",
                landed.url,
                headers={**fields, **own},
                extensions=landed.extensions | extensions,
            )
            if _origin(landed.url) != _origin(self._url):
                options["auth"] = None
        return self._client.send(request, **options)

    def _note_connection(self, event: str, info: Mapping[str, Any]) -> None:
        """Keep the sockets of our own client, so that reads that wait can be woken."""
        if event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            connection = info["return_value"].get_extra_info("socket")
            if connection is not None:
                with self._lock:
                    self._sockets.add(connection)
                if self._over():
                    _shut(connection)


def _shut(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        # Not SSLSocket's own method: that takes the state away which the reader uses.
        socket.socket.shutdown(one, socket.SHUT_RDWR)


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def client_for(timeout: float) -> httpx.Client:
    """A client as sources make it for themselves; several may share one."""
    import httpx

    # How many are open is for sources to say; httpx would keep 20, and close all others after use.
    return httpx.Client(
        verify=tls_when_needed(), timeout=timeout, follow_redirects=False,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
    )  # fmt: skip


BACKOFF_S = 0.1
"""The pause before the first retry; doubled each time."""

MAX_BACKOFF_S = 5.0
"""No pause is longer, whatever Retry-After says: a longer one is an error instead."""

MIN_PROGRESS = 64 * 1024
"""Bytes that make a broken answer progress and no failure; also the least in `timeout` seconds."""

MAX_PARTS = 16
"""Ranges in one request; servers draw their limits higher, our own service at 16."""

MAX_PART_SIZE = 64 * 1024
"""Bytes of a range that shares a request with others; larger ones have their own."""


class HTTPSource(Source):
    """An object at an http:// or https:// URL, read by ranges; made by `open_source`.

    Nothing is asked before the first read. `etag` and `size` are those of the first answer, and
    every later answer is held to them: SourceChanged. A server that answers a range with the whole
    object is left at its first answer: RangeIgnored; unless the object is no longer than the range
    requested, which is then taken, and kept for later reads. Server errors, lost connections,
    short and slow answers are tried again `retries` times for each read, resuming where they broke
    off: then SourceUnavailable. SourceNotFound for 404 and 410; SourceError for what no second try
    would repair.
    """

    def __init__(
        self,
        url: str,
        *,
        retries: int = 3,
        timeout: float = 30.0,
        headers: Mapping[str, str] | None = None,
        client: httpx.Client | None = None,
        connections: int = CONNECTIONS,
        max_bytes: int | None = None,
        max_requests: int | None = None,
    ) -> None:
        import httpx

        self._httpx = httpx
        self._requests = Requests(
            url, timeout, headers or {}, client, over=lambda: self._batch.cancelled
        )
        shown = self._requests.shown
        super().__init__(
            shown, size=None, remote=True, max_bytes=max_bytes, max_requests=max_requests
        )
        self.retries = retries
        self.timeout = timeout
        self._seen = FirstAnswer(shown)
        # an object that a server without ranges sent whole because it is that small
        self._answered_whole = False
        self._whole: bytes | None = None
        # what the threads of `read_many` share
        self.connections = connections
        self._batch = ReadBatch(connections, self._requests.interrupt)
        self._lock = threading.RLock()
        self._takes_several: bool | None = None

    def read_up_to(self, range: ByteRange) -> bytes:
        """Return the bytes of `range`, or as many as the object has; learns `size` and `etag`."""
        stop = range.stop if self.size is None else min(range.stop, self.size)
        self._within_budget(max(stop - range.start, 0), 0)
        if self._whole is not None:
            return self._whole[range.start : stop]
        self._answered_whole = False
        data = b"".join(self._stream(range.start, stop))
        if self._answered_whole and len(data) == self.size:
            self._whole = data
        return data

    def read_many(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Return the bytes of several ranges, in few requests and several of them at once."""
        self._all_within_budget(ranges)
        if len(ranges) < 2 or self.connections < 2 or self.size is None or self._whole is not None:
            return [self.read_up_to(one) for one in ranges]
        wanted = [ByteRange(min(r.start, self.size), min(r.stop, self.size)) for r in ranges]
        # Ranges of one request must not overlap (RFC 9110, 17.15).
        reads = coalesce(wanted)
        pieces: list[tuple[ByteRange, bytes]] = []
        small = [one for one in reads if one.size <= MAX_PART_SIZE]
        most = sum(one.size for one in reads) + (len(small) + 1) * PART_HEAD
        groups = self._grouped(small) if self._has_room(most) else []
        if self._takes_several is None and groups:
            pieces += self._several(groups.pop(0))
        for parts in self._batch.run(groups if self._takes_several else [], self._several):
            pieces += parts
        rest = [one for one in reads if pieces_of(one, pieces) is None]
        pieces += self._batch.run(rest, lambda one: (one, self._one(one)))
        return [pieces_of(one, pieces) or b"" for one in wanted]

    def _grouped(self, reads: list[ByteRange]) -> list[list[ByteRange]]:
        """Even groups that are requested in one request each; none where that does not help."""
        count = -(-len(reads) // MAX_PARTS)
        if len(reads) < 2 or self._takes_several is False:
            return []
        return [reads[n::count] for n in range(count)]

    def _one(self, one: ByteRange) -> bytes:
        """One range of several that are read at once."""
        data = b"".join(self._stream(one.start, one.stop, self._batch))
        if len(data) < one.size:
            raise self._seen.changed(f"{self.size} bytes", f"the end at {one.start + len(data)}")
        return data

    def _several(self, group: list[ByteRange]) -> list[tuple[ByteRange, bytes]]:
        """Ask for several ranges in one request, and return those that came.

        Whatever goes wrong here does not with one range a request, or is found and tried again
        there. Servers that do not know several ranges answer with everything, with the first of
        them, or with an error; they are not asked again.
        """
        self._batch.check()
        field = "bytes=" + ",".join(one.header.removeprefix("bytes=") for one in group)
        most = sum(one.size for one in group) + (len(group) + 1) * PART_HEAD
        width = self._batch.begin()
        try:
            with contextlib.closing(self._send_field(field)) as response:
                fields, status = response.headers, response.status_code
                boundary = boundary_of(fields.get("content-type", ""))
                length = length_of(fields)
                if status >= 500 or status in RETRIED:
                    return []
                if status == 200:
                    with self._lock:
                        self._seen.judge_whole(fields)
                plain = fields.get("content-encoding", "identity") == "identity"
                if status != 206 or boundary is None or length is None or not plain:
                    self._takes_several = False
                    return []
                if length > most or not self._reserve(length):
                    return []
                body = b"".join(self._body(response, BodyPart(0, length, whole=False), length))
            parts = parts_of(body, boundary)
            with self._lock:
                for place, _ in parts:
                    self._seen.judge_part(fields, place)
            self._takes_several = True
            return [(place.range, data) for place, data in parts if place.range is not None]
        except (BrokenAnswer, self._httpx.TransportError):
            self._batch.check()
            self._takes_several = self._takes_several or False
            return []
        finally:
            self._batch.end(width)

    def pieces(
        self, range: ByteRange | None = None, size: int = PIECE_SIZE
    ) -> Iterator[bytes | memoryview]:
        """Yield the bytes of `range`, or of all, out of one answer, in pieces as they arrive.

        Everything is requested without a Range field if nothing was read before, so that it works
        on every server.
        """
        if range is None:
            yield from self._stream(0, self.size)
            return
        if self.size is not None and range.stop > self.size:
            raise self._ends_before(range, self.size)
        self._within_budget(range.size, 0)
        done = 0
        for piece in self._stream(range.start, range.stop):
            done += len(piece)
            yield piece
        if done < range.size:
            raise self._ends_before(range, range.start + done)

    def refresh(self) -> int | None:
        """Ask for the present length and ETag; SourceChanged if the object is shorter than it was.

        A server says nothing of what lies before the new bytes: that an object with a new ETag
        has only grown is the caller's knowledge.
        """
        before = self._seen
        self._seen, self._whole = FirstAnswer(self.name), None
        try:
            for _ in self._stream(0, 1):
                pass
        except BaseException:
            self._seen = before
            raise
        now = self._seen.size
        if before.size is not None and now is not None and now < before.size:
            self._seen = before
            raise before.changed(f"{before.size} bytes or more", f"{now}")
        self._learn()
        return self.size

    def expect(self, size: int | None, etag: str | None) -> None:
        """Hold the first answer to what is known already."""
        super().expect(size, etag)
        if size is not None:
            self._seen.size, self._seen.etag = size, etag
            self._learn()

    def close(self) -> None:
        """Close the connections, unless they belong to a client that was given."""
        if not self.closed:
            super().close()
            self._requests.close()

    def _learn(self) -> None:
        self.size, self.etag = self._seen.size, self._seen.etag

    def _stream(
        self, start: int, stop: int | None, batch: ReadBatch | None = None
    ) -> Iterator[bytes]:
        """Yield [start, stop), resuming where an answer breaks off; `stop` None is the end.

        The one place that decides what is tried again. Ends early at the end of the object.
        Refusals that may come of a batch's other requests are tried again with fewer at once,
        and are not failures.
        """
        position, failures = start, 0
        while stop is None or position < stop:
            began = position
            problem = BrokenAnswer("the server sends less than requested")
            width, refused = batch.begin() if batch else 0, False
            try:
                for piece in self._answer(position, stop):
                    if batch:
                        batch.check()
                    position += len(piece)
                    yield piece
            except BrokenAnswer as broken:
                problem, refused = broken, position == began
            except PastTheEnd:
                if position > start:
                    self._seen.ends_at(position)
                elif self._seen.size is None:
                    # A server that tells no total says where the last byte stands, or does not.
                    with (
                        contextlib.suppress(self._httpx.TransportError),
                        contextlib.closing(self._send_field("bytes=-1")) as response,
                    ):
                        self._seen.judge_last(response.status_code, response.headers)
                self._learn()
                return
            finally:
                excused = batch.end(width, refused=refused) if batch else False
            if position >= min(end for end in (stop, self.size, 1 << 128) if end is not None):
                return
            if position - began < MIN_PROGRESS and not excused:
                failures += 1
            if failures > self.retries:
                raise SourceUnavailable(
                    f"{self.name} could not be read: {problem}",
                    offset=position,
                    advice=f"gave up after {failures} tries",
                ) from problem
            if position == began or problem.after_s:
                self._pause(problem, failures, batch, excused=excused)

    def _pause(
        self, problem: BrokenAnswer, failures: int, batch: ReadBatch | None, *, excused: bool
    ) -> None:
        pause = min(BACKOFF_S * 2 ** max(failures - 1, 0), MAX_BACKOFF_S)
        if problem.after_s is not None:
            if problem.after_s > MAX_BACKOFF_S and not excused:
                raise SourceUnavailable(
                    f"{self.name} could not be read: {problem}",
                    advice=f"the server asks to retry in {problem.after_s:.0f} s",
                ) from problem
            pause = max(pause, min(problem.after_s, MAX_BACKOFF_S))
        if batch:
            batch.pause(pause)
        else:
            time.sleep(pause)

    def _answer(self, start: int, stop: int | None) -> Iterator[bytes]:
        """Make one request and yield the part of its body that belongs to [start, stop)."""
        httpx = self._httpx
        field: str | None = f"bytes={start}-" if start else None
        if stop is not None:
            field = ByteRange(start, stop).header
        try:
            with contextlib.closing(self._send_field(field)) as response:
                with self._lock:
                    part = self._seen.check(response.status_code, response.headers, start, stop)
                    self._answered_whole = part.whole
                self._learn()
                promised = part.length or 0
                if not self._reserve(promised):
                    self._within_budget(promised, 0)
                yield from self._body(response, part, promised)
        except (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL) as error:
            raise SourceError(f"{self.name} cannot be requested: {error}") from error
        except httpx.TimeoutException as error:
            raise BrokenAnswer(f"no answer in {self.timeout} s") from error
        except httpx.TransportError as error:
            why = str(error) or type(error).__name__
            raise BrokenAnswer(f"the connection failed: {why}") from error
        finally:
            self._learn()

    def _has_room(self, size: int) -> bool:
        return self.max_bytes is None or self.bytes_read + self._under_way + size <= self.max_bytes

    def _reserve(self, size: int) -> bool:
        """Reserve bytes of the budget for an answer that is about to be read."""
        with self._lock:
            if not self._has_room(size):
                return False
            self._under_way += size
            return True

    def _send_field(self, field: str | None) -> httpx.Response:
        """Send a request with a Range field, or without one, and follow redirects."""
        own = {"Accept-Encoding": "identity"}  # ranges are counted in the bytes as stored
        if field is not None:
            own["Range"] = field
            etag = self._seen.etag
            if etag is not None and not etag.startswith("W/"):
                own["If-Range"] = etag  # RFC 9110, 13.1.5: never a weak one
        return self._requests.send(own, self._count)

    def _count(self) -> None:
        """Note a request that is about to be sent, if the budget has it."""
        with self._lock:
            self._within_budget(0, 1)
            self.requests += 1

    def _body(self, response: httpx.Response, part: BodyPart, promised: int) -> Iterator[bytes]:
        """Yield the wanted part of the body; BrokenAnswer if less comes, or too slowly.

        `promised` bytes were reserved of the budget.
        """
        skip, left = part.skip, part.length
        got = window = 0
        window_began = time.monotonic()
        try:
            for piece in response.iter_raw():
                with self._lock:
                    self._within_budget(len(piece) if left is None else 0, 0)
                    self.bytes_read += len(piece)
                    come = min(len(piece), promised)
                    promised, self._under_way = promised - come, self._under_way - come
                window += len(piece)
                if window >= MIN_PROGRESS:
                    window, window_began = 0, time.monotonic()
                skipped = min(skip, len(piece))
                skip -= skipped
                wanted = piece[skipped : None if left is None else skipped + left]
                if wanted:
                    got += len(wanted)
                    left = None if left is None else left - len(wanted)
                    yield wanted
                if left == 0:
                    if skipped + len(wanted) < len(piece):
                        return  # more than was announced: not ours
                elif time.monotonic() - window_began > self.timeout:
                    raise BrokenAnswer(f"fewer than {MIN_PROGRESS} bytes came in {self.timeout} s")
        finally:
            with self._lock:
                self._under_way -= promised  # what did not come of it
        if left:
            raise BrokenAnswer(f"the response ended after {got} of {part.length} bytes")
        if part.whole and left is None:
            self._seen.ends_at(got)
            self._learn()
