"""Boxes as bytes, written plainly and fast: a repeated file may hold a hundred thousand of them."""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack
from typing import Any

import numpy as np

MATRIX = pack(">9I", 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)


def box(code: str, *parts: bytes) -> bytes:
    r"""A box: its size, its code and its body.

    >>> box("free", b"abc")
    b'\x00\x00\x00\x0bfreeabc'
    """
    body = b"".join(parts)
    return pack(">I", 8 + len(body)) + code.encode("latin-1") + body


def full(code: str, *parts: bytes, version: int = 0, flags: int = 0) -> bytes:
    """A full box: version and flags stand before its body."""
    return box(code, pack(">I", version << 24 | flags), *parts)


def numbers(*values: int) -> bytes:
    """32-bit numbers, as most fields are."""
    return pack(f">{len(values)}I", *values)


def table(rows: Any) -> bytes:
    """How many rows there are, and their 32-bit numbers.

    >>> table([(1, 2)]).hex()
    '000000010000000100000002'
    """
    table = np.asarray(rows, ">u4")
    return numbers(len(table)) + table.tobytes()


FTYP = box("ftyp", b"isom", numbers(0), b"isom")
MEDIA = len(FTYP) + 8
"""Where the media data of `file_of` begins."""


def file_of(media: int, *parts: bytes) -> bytes:
    """An ftyp, an mdat of so many bytes, and further boxes."""
    return b"".join((FTYP, box("mdat", bytes(media)), *parts))


def video_entry(code: str = "avc1") -> bytes:
    """A visual sample entry without boxes inside."""
    return box(code, bytes(6), pack(">H", 1), bytes(16), pack(">HH", 64, 48), bytes(50))


def stbl(
    *,
    entries: Iterable[bytes] | None = None,
    stts: Any = (),
    stsc: Any = (),
    stsz: bytes = numbers(0, 0),
    stco: Any = (),
    more: bytes = b"",
) -> bytes:
    """A sample table.

    Args:
        entries: sample entries; None: one of video.
        stts, stsc, stco: rows; none by default.
        stsz: sample_size, sample_count and what follows.
        more: further boxes.
    """
    described = [video_entry()] if entries is None else list(entries)
    return box(
        "stbl",
        full("stsd", numbers(len(described)), *described),
        full("stts", table(stts)),
        full("stsc", table(stsc)),
        full("stsz", stsz),
        full("stco", table(stco)),
        more,
    )


def track(number: int, tables: bytes, *, more: bytes = b"", inside: bytes = b"") -> bytes:
    """A trak of video with 1,000 ticks a second.

    Args:
        number: track_ID.
        tables: its stbl.
        more: further boxes of the trak.
        inside: further boxes of the minf.
    """
    return box(
        "trak",
        full("tkhd", numbers(0, 0, number, 0, 0), bytes(16), MATRIX, bytes(8), flags=3),
        box(
            "mdia",
            full("mdhd", numbers(0, 0, 1000, 0, 0x55C40000)),
            full("hdlr", bytes(4), b"vide", bytes(13)),
            box("minf", full("vmhd", bytes(8), flags=1), inside, tables),
        ),
        more,
    )


def moov(tracks: Iterable[bytes], *, extended: Iterable[int] | None = None) -> bytes:
    """A moov.

    Args:
        tracks: its traks, and other boxes inside.
        extended: track_IDs that have a trex of one tick and one byte a sample; None: no mvex.
    """
    header = full(
        "mvhd", numbers(0, 0, 1000, 0, 0x10000), bytes(12), MATRIX, bytes(24), b"\0\0\0\1"
    )
    extends = b""
    if extended is not None:
        defaults = (full("trex", numbers(number, 1, 1, 1, 0)) for number in extended)
        extends = box("mvex", *defaults)
    return box("moov", header, *tracks, extends)
