"""Which bytes of an upload a request carries, by its Content-Range."""

from __future__ import annotations

from fragdex import ByteRange, parse_content_range
from fragdex.errors import InvalidRange, InvalidRequest, TooLarge, Unprocessable, UploadGap
from fragdex.service.uploads.model import Upload

__all__ = ["announced", "span_of"]


def announced(content_range: str | None, limit: int | None) -> tuple[ByteRange | None, int | None]:
    """(the bytes that a Content-Range names, its total or None); (None, None) without one.

    Args:
        limit: bytes that one chunk may have.

    Raises:
        InvalidRequest: it cannot be read, or names no bytes.
        TooLarge: more bytes than `limit`.

    >>> announced("bytes=0-4/10", 64)
    (ByteRange(start=0, stop=5), 10)
    """
    if content_range is None:
        return None, None
    try:
        named = parse_content_range(content_range)
    except InvalidRange as error:
        raise InvalidRequest(
            error.message,
            pointer="Content-Range",
            expected="bytes START-END/TOTAL",
            found=error.found,
        ) from None
    if named.range is None:
        raise InvalidRequest(
            "this Content-Range names no bytes",
            pointer="Content-Range",
            expected="bytes START-END/TOTAL",
            found=repr(content_range),
        )
    if limit is not None and named.range.size > limit:
        raise TooLarge(
            "this chunk is larger than the service takes",
            more={"limit": limit},
            expected=f"at most {limit} bytes",
            found=named.range.size,
        )
    return named.range, named.total


def span_of(
    upload: Upload, named: ByteRange | None, total: int | None, length: int | None
) -> ByteRange:
    """The bytes of the upload that a request carries: those named, or all.

    Args:
        length: Content-Length of the request, where it has one.

    Raises:
        Unprocessable: the total, or the length of the body, is not what was announced.
        UploadGap: the bytes begin after those that are here.
    """
    size = upload.byte_size
    if total is not None and total != size:
        raise Unprocessable(
            "the total of Content-Range is not the byte_size of the record",
            pointer="Content-Range",
            more={"byte_size": size, "next_byte": upload.next_byte},
            expected=size,
            found=total,
        )
    span = ByteRange(0, size) if named is None else named
    if span.stop > size:
        raise Unprocessable(
            "Content-Range ends after the byte_size of the record",
            pointer="Content-Range",
            more={"byte_size": size, "next_byte": upload.next_byte},
            expected=f"at most {size}",
            found=span.stop,
        )
    if length is not None and length != span.size:
        raise Unprocessable(
            "the body is not as long as announced",
            more={"byte_size": size, "next_byte": upload.next_byte},
            expected=f"{span.size} bytes",
            found=length,
        )
    if span.start > upload.next_byte:
        raise UploadGap(
            "these bytes begin after those that are here",
            more={"next_byte": upload.next_byte},
            expected=f"a start of at most {upload.next_byte}",
            found=span.start,
        )
    return span
