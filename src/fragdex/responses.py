"""What a web server answers with a file that is made or cut: status, fields, body (RFC 9110).

Knows no framework: any server can send it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field

from fragdex.byterange import ByteRange, parse_range
from fragdex.record import record

__all__ = ["Fields", "Response", "has_already", "may_be_partial", "respond"]

Fields = Mapping[str, str] | Iterable[tuple[str, str]]
"""Header fields of a request, as a mapping of any kind or as pairs."""


@record(frozen=True, slots=True)
class Response:
    """A response, whose body is made while it is sent.

    Attributes:
        status: 200, 206, 304, 405, 412 or 416.
        headers: field names as HTTP writes them, each once.
        chunks: the body, piece by piece, in bounded memory; empty for HEAD. Files stay open until
            it is exhausted or closed.
    """

    status: int
    headers: dict[str, str]
    chunks: Iterator[bytes] = field(default_factory=lambda: iter(()), repr=False)


def respond(
    method: str,
    headers: Fields,
    *,
    size: int,
    etag: str,
    media_type: str,
    chunks: Callable[[ByteRange], Iterator[bytes]],
    more: Mapping[str, str] | None = None,
) -> Response:
    """The response to a request for so many bytes.

    Range, If-Range, If-None-Match and If-Match decide, as RFC 9110 has it; of several ranges, which
    no player requests, the whole is sent.

    Args:
        method: GET and HEAD are answered; others by 405.
        headers: of the request; their names in any case.
        size: bytes of the whole.
        etag: its strong entity tag, in quotes.
        media_type: of the whole.
        chunks: gives the bytes of a range, piece by piece. The first is taken before this returns,
            so that what is wrong with a source raises here, and not in the middle of a body.
        more: fields of every answer but 405.
    """
    by_name = _by_name(headers)
    fields = {**(more or {}), "ETag": etag, "Accept-Ranges": "bytes"}
    if method not in ("GET", "HEAD"):
        return _text(405, {"Allow": "GET, HEAD"}, "only GET and HEAD are answered here")
    if "if-match" in by_name and not _names(_tags(by_name["if-match"]), etag):
        return _text(412, fields, "the file is another one now", method)
    if has_already(by_name, etag):
        return Response(304, fields)
    # a range is defined for GET alone (14.2)
    wanted = by_name.get("range") if method == "GET" and may_be_partial(by_name, etag) else None
    answer = parse_range(wanted, size, max_ranges=1)
    fields |= answer.headers
    if answer.status == 416:
        return _text(416, fields, f"the range begins after the last of {size} bytes")
    fields["Content-Type"] = media_type
    if method == "HEAD":
        return Response(answer.status, fields)
    body = chunks(answer.ranges[0])
    return Response(answer.status, fields, _Chunks(next(body, b""), body))


def has_already(headers: Mapping[str, str], etag: str) -> bool:
    """Whether If-None-Match names this entity tag, or any; compared weakly (13.1.2).

    Args:
        headers: by their names in small letters, or a mapping that takes any.
    """
    tags = headers.get("if-none-match")
    return tags is not None and _names([one.removeprefix("W/") for one in _tags(tags)], etag)


def may_be_partial(headers: Mapping[str, str], etag: str) -> bool:
    """Whether If-Range lets a range be answered; it compares strongly (13.1.5)."""
    condition = headers.get("if-range")
    return condition is None or condition.strip() == etag


def _by_name(headers: Fields) -> dict[str, str]:
    """By their names in small letters; a field that comes twice is a list (5.3)."""
    fields: dict[str, str] = {}
    for name, text in headers.items() if isinstance(headers, Mapping) else headers:
        name = name.lower()
        fields[name] = f"{fields[name]}, {text}" if name in fields else text
    return fields


def _tags(field: str) -> list[str]:
    return [tag.strip() for tag in field.split(",")]


def _names(tags: list[str], etag: str) -> bool:
    """Whether a list of entity tags names this one, or any."""
    return tags == ["*"] or etag in tags


def _text(status: int, fields: Mapping[str, str], text: str, method: str = "GET") -> Response:
    body = f"{text}\n".encode()
    headers = {**fields, "Content-Type": "text/plain", "Content-Length": str(len(body))}
    return Response(status, headers, iter(() if method == "HEAD" else (body,)))


class _Chunks(Iterator[bytes]):
    """A body whose first piece was taken; it can be closed before any is sent."""

    def __init__(self, first: bytes, rest: Iterator[bytes]) -> None:
        self._first: bytes | None = first
        self._rest = rest

    def __next__(self) -> bytes:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        return next(self._rest)

    def close(self) -> None:
        """Let go of the files."""
        self._first = None
        close = getattr(self._rest, "close", None)
        if close is not None:
            close()
