"""What the bytes of an AVC picture tell about it (ISO/IEC 14496-10, 7.3.1)."""

from __future__ import annotations

from typing import Final

__all__ = ["IDR", "first_slice"]

IDR: Final = 5
"""nal_unit_type of a slice of a picture that needs none before it, nor lets those behind it."""
_FIRST_SLICE, _LAST_SLICE = 1, 5


def first_slice(data: bytes | memoryview, size: int) -> int | None:
    """nal_unit_type of the first slice of a picture, or None where none begins in `data`.

    Args:
        data: its bytes from the first one on; they may be cut off behind the first slice's header.
        size: bytes of the length in front of each NAL unit; 0: start codes (Annex B).

    >>> first_slice(bytes.fromhex("00000002 0910 0000029b 65"), 4) == IDR
    True
    """
    if size:
        at = 0
        while at + size < len(data):
            kind = data[at + size] & 0x1F
            if _FIRST_SLICE <= kind <= _LAST_SLICE:
                return kind
            at += size + int.from_bytes(data[at : at + size], "big")
        return None
    raw = bytes(data)
    at = raw.find(b"\0\0\1")
    while 0 <= at < len(raw) - 3:
        kind = raw[at + 3] & 0x1F
        if _FIRST_SLICE <= kind <= _LAST_SLICE:
            return kind
        at = raw.find(b"\0\0\1", at + 3)
    return None
