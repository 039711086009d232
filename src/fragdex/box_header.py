"""The header of a box: its type, how long the box says it is, and how long the header itself is.

The one reader of headers in Python; the C extension has its own. A header is a size, a type, a
64-bit size where the first is 1, and the user type of a uuid box (ISO/IEC 14496-12, 4.2.2).
"""

from __future__ import annotations

import struct
from typing import Literal, NamedTuple, TypeAlias

__all__ = ["BoxHeader", "SizeForm", "is_chain", "only_zeros", "read_header"]

SizeForm: TypeAlias = Literal["compact", "large", "to_end"]

_short = struct.Struct(">I4s").unpack_from
_large = struct.Struct(">Q").unpack_from
_new = tuple.__new__  # of a named tuple it takes a third of the time of the constructor


class BoxHeader(NamedTuple):
    """What the header of a box says; it may be impossible.

    Attributes:
        type: the four bytes of its type.
        size: bytes of the box, header included; 0 where only the end of the file, or of the
            input, says it.
        length: bytes of the header, with the user type of a uuid box.
        form: "compact", "large" (64 bits), "to_end" (a size of 0) or "cut" (64 bits that the
            input ends before).
    """

    type: bytes
    size: int
    length: int
    form: SizeForm | Literal["cut"]

    @property
    def impossible(self) -> bool:
        """Whether the box says that it is smaller than its own header."""
        return self.size < self.length and self.form in ("compact", "large")

    def fits(self, room: int) -> bool:
        """Whether a box that says its size is whole in `room` bytes from its start on."""
        return self.length <= self.size <= room

    def size_in(self, room: int) -> int:
        """Bytes of a box that may reach to the end of these `room` bytes; 0 if it cannot fit."""
        if self.form == "to_end":
            return room if room >= self.length else 0
        return self.size if self.fits(room) else 0


def read_header(
    data: bytes | bytearray | memoryview, at: int = 0, stop: int | None = None
) -> BoxHeader | None:
    """The box header at `at`, or None where fewer than 8 bytes are left before `stop`.

    Args:
        data: bytes-like.
        at: where the box starts in `data`.
        stop: end of what belongs to the box around it, exclusive; None: of `data`.
    """
    left = (len(data) if stop is None else stop) - at
    if left < 8:
        return None
    size, kind = _short(data, at)
    length = 8
    form: SizeForm | Literal["cut"] = "compact"
    if size == 1:
        length = 16
        if left < 16:
            size, form = 0, "cut"
        else:
            (size,) = _large(data, at + 8)
            form = "large"
    elif size == 0:
        form = "to_end"
    if kind == b"uuid":
        length += 16
    return _new(BoxHeader, (kind, size, length, form))


def is_chain(body: memoryview) -> bool:
    """Whether `body` is boxes one after the other to its end, or to zeros that close it.

    Only headers are looked at, and a type must be printable: what passes by chance is rare.
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
    """Whether every byte is zero; nothing is, too."""
    return not bytes(data).strip(b"\0")
