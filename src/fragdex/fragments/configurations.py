"""Configuration boxes of sample entries, read as bytes.

Whatever the declaration of a box makes of a damaged one, a codec string or a number of channels
needs a few bytes of it, or cannot be said.
"""

from __future__ import annotations

from fragdex.boxes import Box, build

__all__ = ["Bits", "Missing", "body", "config", "decoder_config"]


class Missing(Exception):
    """The bytes that are asked for are not there."""


class Bits:
    r"""Bits of a byte string, highest first.

    >>> bits = Bits(b"\x12\x10")
    >>> bits.take(5), bits.take(4), bits.left
    (2, 4, 7)
    """

    def __init__(self, data: bytes) -> None:
        self.value, self.left = int.from_bytes(data, "big"), len(data) * 8

    def take(self, count: int) -> int:
        """The next bits as a number.

        Raises:
            Missing: there are not so many.
        """
        if count > self.left:
            raise Missing
        self.left -= count
        return self.value >> self.left & ((1 << count) - 1)

    def align(self) -> None:
        """Pass over the rest of a byte that was begun."""
        self.left -= self.left % 8


def body(box: Box) -> bytes:
    """What stands behind the size and the type of a box."""
    data = build(box)
    return data[16 if data[:4] == b"\0\0\0\1" else 8 :]


def config(entry: Box, *paths: str, least: int) -> bytes:
    """The body of the first box at one of these paths that has `least` bytes.

    Raises:
        Missing: there is none.
    """
    for path in paths:
        for found in entry.find_all(path):
            data = body(found)
            if len(data) >= least:
                return data
    raise Missing


def decoder_config(data: bytes) -> tuple[int, bytes, bytes]:
    """Of an ES_Descriptor the object type, its DecoderConfigDescriptor and DecoderSpecificInfo.

    ISO/IEC 14496-1, 7.2.6; the last one is empty where there is none.

    Raises:
        Missing, IndexError: the descriptors are damaged.
    """
    tag, es, _ = _descriptor(data)
    if tag != 3:
        raise Missing
    at = 3
    if es[2] & 0x80:  # streamDependenceFlag
        at += 2
    if es[2] & 0x40:  # URL_Flag
        at += 1 + es[at]
    if es[2] & 0x20:  # OCRstreamFlag
        at += 2
    tag, decoder, _ = _descriptor(es[at:])
    if tag != 4 or len(decoder) < 13:
        raise Missing
    inner = decoder[13:]
    while inner:
        tag, found, inner = _descriptor(inner)
        if tag == 5:
            return decoder[0], decoder, found
    return decoder[0], decoder, b""


def _descriptor(data: bytes) -> tuple[int, bytes, bytes]:
    """Tag, body and what follows; the length takes up to four bytes of 7 bits (8.3.3)."""
    size, at = 0, 1
    for at in range(1, 5):
        size = size << 7 | data[at] & 0x7F
        if not data[at] & 0x80:
            break
    return data[0], data[at + 1 : at + 1 + size], data[at + 1 + size :]
