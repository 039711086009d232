"""Where an index comes from: the bytes it describes, and the way it was made."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["How", "SourceInfo"]


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """Which bytes an index describes.

    Attributes:
        name: path or URL as it was given; "" for bytes and streams.
        size: bytes, or None while the end is unknown.
        md5: 32 hex digits, or None where it was not asked for.
        etag: the server's entity tag, or None.

    >>> SourceInfo("movie.mp4", 1024).size
    1024
    """

    name: str = ""
    size: int | None = None
    md5: str | None = None
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class How:
    """How an index came to be, and what it cost.

    Attributes:
        method: `boxes` (every moof was read), `sidx`, `mfra`, `stbl` (progressive),
            `stbl+boxes` (hybrid) or `index` (a saved form that does not say).
        exact: whether every sample is known.
        reason: one sentence on why this way was taken.
        requests: reads that the source answered.
        bytes_read: bytes that were read, box headers included.
        mdat_bytes_read: bytes of media data that were read; 0 unless they came along in a read
            of a few KiB at the start or the end.

    >>> How("boxes", True, "no sidx and no mfra").exact
    True
    """

    method: str
    exact: bool
    reason: str = ""
    requests: int = 0
    bytes_read: int = 0
    mdat_bytes_read: int = 0
