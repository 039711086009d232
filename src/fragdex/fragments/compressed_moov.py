"""A moov that is compressed, as QuickTime writes it: moov/cmov with dcom and cmvd."""

from __future__ import annotations

import zlib

from fragdex.box_header import read_header
from fragdex.errors import LimitExceeded, MalformedBox

__all__ = ["MAX_PLAIN", "plain_init", "plain_moov"]

MAX_PLAIN = 1 << 26
"""Bytes that the compressed moovs of a file may have when they are plain; real ones have few MB."""
MOST_CHILDREN = 16
"""Boxes that are looked through for a cmov: it stands alone in its moov."""


def plain_moov(data: bytes, *, offset: int = 0, room: int = MAX_PLAIN) -> bytes:
    r"""The moov itself where it is compressed; else the same bytes (QuickTime File Format, cmov).

    Args:
        data: a moov.
        offset: of it in the file, for errors.
        room: bytes that it may have.

    Raises:
        MalformedBox: it is compressed in another way than by zlib, or damaged.
        LimitExceeded: it has more bytes than that.

    >>> plain_moov(b"\0\0\0\x08moov")
    b'\x00\x00\x00\x08moov'
    """
    cmov = _children(data, 0, len(data)).get(b"cmov")
    if cmov is None:
        return data
    inside = _children(data, *cmov)
    start, stop = inside.get(b"dcom", (0, 0))
    method = bytes(data[start : stop if stop - start <= 12 else start + 12][-4:])
    place, end = inside.get(b"cmvd", (0, 0))
    path = "moov/cmov"
    if method != b"zlib" or end - place < 12:
        raise MalformedBox(
            "the movie header is compressed in a way that is not known",
            path=path,
            offset=offset + cmov[0],
            expected="dcom with zlib, and cmvd",
            found=method.decode("latin-1") or "no dcom",
            advice="rewrite the file, for example with ffmpeg -i FILE -c copy OUT.mov",
        )
    unpacking = zlib.decompressobj()
    try:
        plain = unpacking.decompress(memoryview(data)[place + 12 : end], max(1, room))
    except zlib.error as error:
        raise MalformedBox(
            f"the compressed movie header is damaged: {error}",
            path=f"{path}/cmvd",
            offset=offset + place,
        ) from error
    if unpacking.unconsumed_tail:
        raise LimitExceeded(
            "the compressed movie header is too large",
            path=f"{path}/cmvd",
            offset=offset + place,
            expected=f"at most {room} bytes",
            found="more",
        )
    header = read_header(plain)
    if header is None or header.type != b"moov" or not header.fits(len(plain)):
        raise MalformedBox(
            "what the compressed movie header holds is no moov",
            path=f"{path}/cmvd",
            offset=offset + place,
        )
    return plain[: header.size]


def plain_init(data: bytes) -> bytes:
    r"""An initialization segment whose moov, if it is compressed, is plain.

    Raises: as `plain_moov`.

    >>> plain_init(b"\0\0\0\x08ftyp\0\0\0\x08moov")
    b'\x00\x00\x00\x08ftyp\x00\x00\x00\x08moov'
    """
    if b"cmov" not in data:
        return data
    pieces, at = [], 0
    while header := read_header(data, at):
        size = header.size_in(len(data) - at)
        if not size:
            break
        piece = data[at : at + size]
        pieces.append(plain_moov(piece) if header.type == b"moov" else piece)
        at += size
    return b"".join([*pieces, data[at:]])


def _children(data: bytes, start: int, stop: int) -> dict[bytes, tuple[int, int]]:
    """Type → start and end of the first child of each type, of the box at `start`."""
    around = read_header(data, start, stop)
    found: dict[bytes, tuple[int, int]] = {}
    at = start + around.length if around is not None else stop
    for _ in range(MOST_CHILDREN):
        header = read_header(data, at, stop)
        if header is None or not header.fits(stop - at):
            break
        found.setdefault(header.type, (at, at + header.size))
        at += header.size
    return found
