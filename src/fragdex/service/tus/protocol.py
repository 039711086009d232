"""The headers of tus 1.0.0 (https://tus.io/protocols/resumable-upload) as values; no IO."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any, Final

from fragdex.errors import InvalidRequest

VERSION: Final = "1.0.0"
EXTENSIONS: Final = (
    "creation",
    "creation-with-upload",
    "expiration",
    "checksum",
    "termination",
    "concatenation",
)
CHECKSUMS: Final[Mapping[str, Callable[..., Any]]] = {
    "sha1": hashlib.sha1,
    "sha256": hashlib.sha256,
    "md5": hashlib.md5,
}
CONTENT_TYPE: Final = "application/offset+octet-stream"
MOST_METADATA: Final = 8 << 10
"""Characters of Upload-Metadata; servers of HTTP take about so much of all headers."""
MOST_PARTS: Final = 1000
"""Uploads that one is put together of."""

_KEY = re.compile(r"[^\s,]+")


@dataclass(frozen=True, slots=True)
class Checksum:
    """What the bytes of a request must hash to, by a function of hashlib."""

    algorithm: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class Concatenation:
    """A part of an upload (`partial`), or what several parts make; their ids in order."""

    partial: bool
    parts: tuple[str, ...] = ()


def parse_metadata(text: str | None) -> dict[str, str]:
    """`Upload-Metadata`: keys and values in base64, a value may be missing.

    Values that are no UTF-8 are left out: they are given back, and mean nothing here.

    Raises:
        InvalidRequest: it cannot be read.

    >>> parse_metadata("filename ZmlsbS5tcDQ=,is_confidential")
    {'filename': 'film.mp4', 'is_confidential': ''}
    """
    found: dict[str, str] = {}
    if text is None or not text.strip():
        return found
    if len(text) > MOST_METADATA:
        raise _invalid("Upload-Metadata", f"at most {MOST_METADATA} characters", len(text))
    for pair in text.split(","):
        key, _, value = pair.strip().partition(" ")
        if not _KEY.fullmatch(key) or key in found:
            raise _invalid("Upload-Metadata", "keys and values in base64", repr(pair[:80]))
        try:
            found[key] = base64.b64decode(value.strip(), validate=True).decode()
        except UnicodeDecodeError:
            continue
        except ValueError as error:
            raise _invalid("Upload-Metadata", "base64", repr(value[:80])) from error
    return found


def parse_number(name: str, text: str | None) -> int:
    """A header that is a number of bytes.

    Raises:
        InvalidRequest: it is missing, or no number.

    >>> parse_number("Upload-Offset", "10")
    10
    """
    if text is None or not re.fullmatch(r"[0-9]{1,18}", text):
        raise _invalid(name, "a number of bytes", text)
    return int(text)


def parse_checksum(text: str | None) -> Checksum | None:
    """`Upload-Checksum`: an algorithm and the digest in base64.

    Raises:
        InvalidRequest: it cannot be read, or the algorithm is none of `CHECKSUMS`.

    >>> parse_checksum("sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=").algorithm
    'sha1'
    """
    if text is None:
        return None
    algorithm, _, value = text.strip().partition(" ")
    try:
        digest = base64.b64decode(value, validate=True)
    except ValueError as error:
        raise _invalid("Upload-Checksum", "base64", repr(value[:80])) from error
    known = CHECKSUMS.get(algorithm)
    if known is None or len(digest) != known(usedforsecurity=False).digest_size:
        names = ", ".join(CHECKSUMS)
        raise _invalid("Upload-Checksum", f"a digest of {names}", repr(text[:80]))
    return Checksum(algorithm, digest)


def parse_concat(text: str | None) -> Concatenation | None:
    """`Upload-Concat`: `partial`, or `final;` and the URLs of parts; of these the ids.

    Raises:
        InvalidRequest: it is neither.

    >>> parse_concat("final;/api/v1/tus/a https://example.org/api/v1/tus/b").parts
    ('a', 'b')
    """
    if text is None:
        return None
    if text == "partial":
        return Concatenation(partial=True)
    kind, _, urls = text.partition(";")
    parts = tuple(url.split("?")[0].rstrip("/").rpartition("/")[2] for url in urls.split())
    if kind != "final" or not parts or not all(parts) or len(parts) > MOST_PARTS:
        raise _invalid(
            "Upload-Concat", f"partial, or final; and up to {MOST_PARTS} URLs", repr(text[:80])
        )
    return Concatenation(partial=False, parts=parts)


def http_date(moment: datetime) -> str:
    """A moment as HTTP writes it (RFC 9110, 5.6.7).

    >>> http_date(datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC))
    'Wed, 02 Jan 2030 03:04:05 GMT'
    """
    return format_datetime(moment.astimezone(UTC).replace(microsecond=0), usegmt=True)


def _invalid(name: str, expected: str, found: object) -> InvalidRequest:
    return InvalidRequest(
        f"the header {name} cannot be read", pointer=name, expected=expected, found=found
    )
