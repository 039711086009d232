"""Whether bytes are boxes: for the few places where the fields before cannot tell."""

from __future__ import annotations

from fragdex.box_header import read_header

__all__ = ["is_chain", "only_zeros"]


def is_chain(body: memoryview) -> bool:
    r"""Whether `body` is boxes one behind the other to its end, or to zeros that close it.

    Only headers are looked at, and a type must be printable: what passes by chance is rare.

    >>> is_chain(memoryview(b"\0\0\0\x08free"))
    True
    >>> is_chain(memoryview(b"\0\0\0\x07free"))
    False
    """
    at, stop = 0, len(body)
    while (header := read_header(body, at)) is not None:
        if min(header.type) < 0x20:
            return only_zeros(body[at:])
        if not header.fits(stop - at):
            return False
        at += header.size
    return only_zeros(body[at:])


def only_zeros(data: memoryview) -> bool:
    """Whether every byte is zero; nothing is, too.

    >>> only_zeros(memoryview(bytes(4)))
    True
    """
    return not bytes(data).strip(b"\0")
