"""What a range server answers, rightly or with faults; nothing here does I/O."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal
from urllib.parse import parse_qs, urlsplit

from fragdex.byterange import ByteRange, RangeVerdict, content_range, parse_range
from fragdex.digest import md5

__all__ = ["Answer", "Faults", "Request", "answer_to"]

LINE = "a-line-between-parts"
"""The boundary of answers of several ranges."""


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(slots=True)
class Request:
    """One request that a RangeServer got, and what it answered.

    `range` is the value of the Range field or None, `status` 0 where no answer was given, `sent`
    the number of body bytes handed to the network. Names in `headers` are lower-case.

    >>> Request("GET", "/content", "bytes=0-9", {}).status
    0
    """

    method: str
    path: str
    range: str | None
    headers: Mapping[str, str]
    status: int = 0
    sent: int = 0


@dataclass(slots=True)
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
    """Answer the request of this number (from 0); `find` gives the content of a path.

    >>> request = Request("GET", "/a", "bytes=1-2", {})
    >>> answer = answer_to(request, 0, {"/a": b"abcdef"}.get, Faults())
    >>> answer.status, answer.body, answer.fields["Content-Range"]
    (206, b'bc', 'bytes 1-2/6')
    """
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
    asked = parse_range(request.range, len(content), max_ranges=1 if faults.single_ranges else 64)
    total = None if faults.unknown_total else len(content)
    if asked is RangeVerdict.IGNORE:
        return None
    if asked is RangeVerdict.UNSATISFIABLE:
        if total is not None:
            fields["Content-Range"] = content_range(None, total)
        return Answer(416, fields=fields)
    if len(asked) > 1:
        return _several(asked, content, total, fields, faults)
    part = asked[0]
    if faults.partial_answers is not None:
        part = ByteRange(part.start, min(part.stop, part.start + faults.partial_answers))
    if faults.misplaced:
        start = min(part.start + faults.misplaced, len(content) - 1)
        part = ByteRange(start, min(start + part.size, len(content)))
    if not faults.no_content_range:
        fields["Content-Range"] = content_range(part, total)
    return Answer(206, content[part.start : part.stop], fields)


def _several(
    asked: Sequence[ByteRange],
    content: bytes,
    total: int | None,
    fields: dict[str, str],
    faults: Faults,
) -> Answer:
    """multipart/byteranges (RFC 9110, 14.6)."""
    kind, fields["Content-Type"] = fields["Content-Type"], f"multipart/byteranges; boundary={LINE}"
    body = bytearray()
    for part in asked:
        start = min(part.start + faults.misplaced, len(content) - 1)
        shown = ByteRange(start, min(start + part.size, len(content)))
        head = f"\r\n--{LINE}\r\nContent-Type: {kind}\r\n"
        if not faults.no_content_range:
            head += f"Content-Range: {content_range(shown, total)}\r\n"
        body += head.encode() + b"\r\n" + content[shown.start : shown.stop]
    body += f"\r\n--{LINE}--\r\n".encode()
    return Answer(206, bytes(body[: len(body) - faults.several_damaged]), fields)
