"""Whether bytes are boxes: for the few places where the fields before cannot tell."""

from __future__ import annotations

import struct

__all__ = ["is_chain", "only_zeros"]

_HEADER = struct.Struct(">I4s")


def is_chain(body: memoryview) -> bool:
    r"""Whether `body` is boxes one behind the other to its end, or to zeros that close it.

    Only headers are looked at, and a type must be printable: what passes by chance is rare.

    >>> is_chain(memoryview(b"\0\0\0\x08free"))
    True
    >>> is_chain(memoryview(b"\0\0\0\x07free"))
    False
    """
    at, stop = 0, len(body)
    while stop - at >= 8:
        size, code = _HEADER.unpack_from(body, at)
        if size == 1 and stop - at >= 16:
            size = int.from_bytes(body[at + 8 : at + 16], "big")
        if size < 8 or at + size > stop or min(code) < 0x20:
            return size == 0 and only_zeros(body[at:])
        at += size
    return only_zeros(body[at:])


def only_zeros(data: memoryview) -> bool:
    """Whether every byte is zero; nothing is, too.

    >>> only_zeros(memoryview(bytes(4)))
    True
    """
    return not bytes(data).strip(b"\0")
