"""Sources over HTTP: range requests that are checked, resumed, limited and never trusted.

One read is one request (RFC 9110, 14.2), unless its answer breaks off or is a redirect. What an
answer means is decided in `answers`; here it is asked for, waited for and tried again.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fragdex.byterange import ByteRange
from fragdex.errors import SourceError, SourceUnavailable
from fragdex.sources.answers import RETRIED, BrokenAnswer, FirstSeen, Part, PastTheEnd
from fragdex.sources.base import PIECE_SIZE, Source

if TYPE_CHECKING:
    import httpx

__all__ = ["HTTPSource"]

BACKOFF_S = 0.1
"""The pause before the first try anew; doubled each time."""

MAX_BACKOFF_S = 5.0
"""No pause is longer, whatever Retry-After says: who must wait longer is told so instead."""

MIN_PROGRESS = 64 * 1024
"""Bytes that make a broken answer progress and no failure; also the least in `timeout` seconds."""

MAX_REDIRECTS = 10
"""Redirects followed for one request; browsers stop at 20, and no CDN needs more than three."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})

# what belongs to one request and is not carried to the next
_OWN_FIELDS = frozenset({"range", "if-range", "host", "accept-encoding"})


class HTTPSource(Source):
    """An object behind an http:// or https:// URL, read by ranges; made by `open_source`.

    Nothing is asked before the first read. `etag` and `size` are those of the first answer, and
    every later answer is held to them: SourceChanged. A server that answers a range with the whole
    object is left at its first answer: RangeIgnored; unless the object is no longer than the range
    asked for, which is then taken, and kept for later reads. Server errors, lost connections,
    short and slow answers are tried again `retries` times for each read, going on where they broke
    off: then SourceUnavailable. SourceNotFound for 404 and 410; SourceError for what no second try
    would mend.

    >>> from fragdex.testing import RangeServer
    >>> with RangeServer(b"abcdef") as server, HTTPSource(server.url) as source:
    ...     source.read(ByteRange(2, 4)), source.size, source.requests
    (b'cd', 6, 1)
    """

    def __init__(
        self,
        url: str,
        *,
        retries: int = 3,
        timeout: float = 30.0,
        headers: Mapping[str, str] | None = None,
        client: httpx.Client | None = None,
        max_bytes: int | None = None,
        max_requests: int | None = None,
    ) -> None:
        import httpx

        self._httpx = httpx
        try:
            self._url = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise SourceError(f"this is no URL: {error}") from error
        # passwords and signatures have no place in messages
        shown = str(self._url.copy_with(username=None, password=None, query=None, fragment=None))
        super().__init__(
            shown, size=None, remote=True, max_bytes=max_bytes, max_requests=max_requests
        )
        self.retries = retries
        self.timeout = timeout
        self._headers = dict(headers or {})
        self._mine = client is None
        self._client = client or httpx.Client(timeout=timeout, follow_redirects=False)
        self._landed: httpx.Request | None = None  # where redirects ended
        self._seen = FirstSeen(shown)
        # an object that a server without ranges sent whole because it is that small
        self._answered_whole = False
        self._whole: bytes | None = None

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

    def pieces(
        self, range: ByteRange | None = None, size: int = PIECE_SIZE
    ) -> Iterator[bytes | memoryview]:
        """Yield the bytes of `range`, or of all, out of one answer, in pieces as they arrive.

        Everything is asked for without a Range field if nothing was read before, so that it works
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
        self._seen, self._whole = FirstSeen(self.name), None
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

    def close(self) -> None:
        """Close the connections, unless they belong to a client that was given."""
        if not self.closed:
            super().close()
            if self._mine:
                self._client.close()

    def _learn(self) -> None:
        self.size, self.etag = self._seen.size, self._seen.etag

    def _stream(self, start: int, stop: int | None) -> Iterator[bytes]:
        """Yield [start, stop), going on where an answer breaks off; `stop` None is the end.

        The one place that decides what is tried again. Ends early at the end of the object.
        """
        position, failures = start, 0
        while stop is None or position < stop:
            began = position
            problem = BrokenAnswer("the server sends less than it was asked for")
            try:
                for piece in self._answer(position, stop):
                    position += len(piece)
                    yield piece
            except BrokenAnswer as broken:
                problem = broken
            except PastTheEnd:
                if position > start:
                    self._seen.ends_at(position)
                elif self._seen.size is None:
                    self._ask_for_the_end()
                self._learn()
                return
            if position >= min(end for end in (stop, self.size, 1 << 128) if end is not None):
                return
            if position - began < MIN_PROGRESS:
                failures += 1
            if failures > self.retries:
                raise SourceUnavailable(
                    f"{self.name} could not be read: {problem}",
                    offset=position,
                    advice=f"given up after {failures} tries",
                ) from problem
            if position == began or problem.after_s:
                self._pause(problem, failures)

    def _pause(self, problem: BrokenAnswer, failures: int) -> None:
        pause = min(BACKOFF_S * 2 ** (failures - 1), MAX_BACKOFF_S)
        if problem.after_s is not None:
            if problem.after_s > MAX_BACKOFF_S:
                raise SourceUnavailable(
                    f"{self.name} could not be read: {problem}",
                    advice=f"the server asks to come back in {problem.after_s:.0f} s",
                ) from problem
            pause = max(pause, problem.after_s)
        time.sleep(pause)

    def _answer(self, start: int, stop: int | None) -> Iterator[bytes]:
        """Make one request and yield the part of its body that belongs to [start, stop)."""
        httpx = self._httpx
        try:
            with contextlib.closing(self._send(start, stop)) as response:
                part = self._seen.judge(response.status_code, response.headers, start, stop)
                self._learn()
                self._answered_whole = part.whole
                self._within_budget(part.length or 0, 0)
                yield from self._body(response, part)
        except (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL) as error:
            raise SourceError(f"{self.name} cannot be asked: {error}") from error
        except httpx.TimeoutException as error:
            raise BrokenAnswer(f"no answer in {self.timeout} s") from error
        except httpx.TransportError as error:
            why = str(error) or type(error).__name__
            raise BrokenAnswer(f"the connection failed: {why}") from error
        finally:
            self._learn()

    def _ask_for_the_end(self) -> None:
        """Learn the length from a server that tells no total: it says where the last byte stands.

        Where it does not, the length stays unknown.
        """
        with (
            contextlib.suppress(self._httpx.TransportError),
            contextlib.closing(self._send_field("bytes=-1")) as response,
        ):
            self._seen.judge_last(response.status_code, response.headers)

    def _send(self, start: int, stop: int | None) -> httpx.Response:
        """Send a request for [start, stop) and follow redirects; the body is not read yet."""
        if not start and stop is None:
            return self._send_field(None)
        return self._send_field(
            f"bytes={start}-" if stop is None else ByteRange(start, stop).header
        )

    def _send_field(self, asked: str | None) -> httpx.Response:
        """Send a request with a Range field, or without one, and follow redirects."""
        own = {"Accept-Encoding": "identity"}  # ranges are counted in the bytes as stored
        if asked is not None:
            own["Range"] = asked
            etag = self._seen.etag
            if etag is not None and not etag.startswith("W/"):
                own["If-Range"] = etag  # RFC 9110, 13.1.5: never a weak one
        landed = self._landed
        response = self._try(landed, own)
        status = response.status_code
        if landed is not None and 400 <= status < 500 and status not in RETRIED | {416}:
            # what a redirect led to may have been lent for a while only: ask where it began
            response.close()
            self._landed = None
            response = self._try(None, own)
        for _ in range(MAX_REDIRECTS):
            if response.status_code not in _REDIRECTS or response.next_request is None:
                return response
            response.close()
            self._landed = response.next_request
            response = self._try(self._landed, own)
        response.close()
        raise SourceError(
            f"{self.name} is redirected too often",
            expected=f"at most {MAX_REDIRECTS} redirects",
            found="one more",
        )

    def _try(self, landed: httpx.Request | None, own: Mapping[str, str]) -> httpx.Response:
        self._within_budget(0, 1)
        self.requests += 1
        options: dict[str, Any] = {"stream": True, "follow_redirects": False}
        if landed is None:
            request = self._client.build_request(
                "GET", self._url, headers={**self._headers, **own}, timeout=self.timeout
            )
        else:
            # the client took credentials out of a redirect to elsewhere; they stay out
            kept = {k: v for k, v in landed.headers.items() if k.lower() not in _OWN_FIELDS}
            request = self._httpx.Request(
                "GET", landed.url, headers={**kept, **own}, extensions=landed.extensions
            )
            if _origin(landed.url) != _origin(self._url):
                options["auth"] = None
        return self._client.send(request, **options)

    def _body(self, response: httpx.Response, part: Part) -> Iterator[bytes]:
        """Yield the wanted part of the body; BrokenAnswer if less comes, or too slowly."""
        skip, left = part.skip, part.length
        got = window = 0
        window_began = time.monotonic()
        for piece in response.iter_raw():
            self._within_budget(len(piece) if left is None else 0, 0)
            self.bytes_read += len(piece)
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
        if left:
            raise BrokenAnswer(f"the answer broke off after {got} of {part.length} bytes")
        if part.whole and left is None:
            self._seen.ends_at(got)
            self._learn()


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
