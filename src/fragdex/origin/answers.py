"""A view over HTTP: 200, 206, 304, 416 (RFC 9110, sections 13 to 15), in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.responses import Response, StreamingResponse

from fragdex.byterange import ByteRange, RangeVerdict, content_range, parse_range
from fragdex.views.view import Sources, View

__all__ = ["Opened", "answer", "has_already"]

_AT_ONCE: Final = 4 << 20
"""Bytes of an answer that are read at once; larger ones go out piece by piece."""

_MOST_TOLD: Final = 1000
"""Characters of a header of findings; proxies refuse answers with some thousand in all headers."""

Opened = Callable[[], AbstractContextManager[list[Any]]]
"""Opens the sources of a view."""


def answer(
    view: View, asked: Headers, method: str, opened: Opened, fields: Mapping[str, str]
) -> Response:
    """The answer to GET or HEAD of a view; reads, so that it is called in a thread.

    Args:
        view: what is served.
        asked: the request's headers; Range, If-Range and If-None-Match decide.
        method: GET or HEAD.
        opened: opens the sources of the view.
        fields: headers of every answer.

    Raises:
        SourceError: before the first byte is sent, so that the answer can say so.
    """
    headers = {**fields, "ETag": view.etag, "Accept-Ranges": "bytes"}
    if view.findings:
        headers["X-Findings"] = _in_a_header(view.findings)
    if has_already(asked, view.etag):
        return Response(status_code=304, headers=headers)
    part, status = ByteRange(0, view.size), 200
    wanted = asked.get("range") if method == "GET" and _may_be_partial(asked, view.etag) else None
    # of several ranges players ask for none: such a request gets the whole
    verdict = parse_range(wanted, view.size, max_ranges=1)
    if verdict is RangeVerdict.UNSATISFIABLE:
        refused = {**headers, "Content-Range": content_range(None, view.size)}
        return Response(f"there are {view.size} bytes\n", 416, refused, "text/plain")
    if not isinstance(verdict, RangeVerdict):
        (part,) = verdict
        status, headers["Content-Range"] = 206, content_range(part, view.size)
    headers["Content-Length"] = str(part.size)
    if method == "HEAD":
        return Response(status_code=status, headers=headers, media_type=view.media_type)
    pieces = _pieces(view, part, opened)
    if part.size <= _AT_ONCE:
        return Response(b"".join(pieces), status, headers, view.media_type)
    first = next(pieces)
    return StreamingResponse(_chained(first, pieces), status, headers, view.media_type)


def _in_a_header(sentences: Sequence[str]) -> str:
    """What a header can hold of sentences, of which a file may have thousands, with its words."""
    shown, room = [], _MOST_TOLD
    for sentence in sentences:
        room -= len(sentence) + 2
        if room < 0:
            break
        shown.append("".join(letter if " " <= letter <= "~" else "?" for letter in sentence))
    more = len(sentences) - len(shown)
    return "; ".join([*shown, f"and {more} more"] if more else shown)


def has_already(asked: Headers, etag: str) -> bool:
    """Whether If-None-Match names this entity tag, or any (RFC 9110, 13.1.2).

    >>> has_already(Headers({"if-none-match": 'W/"a", "b"'}), '"b"')
    True
    """
    told = asked.get("if-none-match")
    if told is None:
        return False
    known = [tag.strip().removeprefix("W/") for tag in told.split(",")]
    return etag in known or known == ["*"]


def _may_be_partial(asked: Headers, etag: str) -> bool:
    """If-Range compares strongly (RFC 9110, 13.1.5)."""
    condition = asked.get("if-range")
    return condition is None or condition.strip() == etag


def _pieces(view: View, part: ByteRange, opened: Opened) -> Iterator[bytes]:
    with opened() as given, Sources(view.sources, given) as sources:
        yield from sources.bytes_of(view.blocks(part))


def _chained(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest
