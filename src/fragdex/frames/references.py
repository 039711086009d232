"""Samples that no other picture refers to: unless they are wanted, they need not be decoded."""

from __future__ import annotations

from typing import Final

__all__ = ["may_be_skipped"]

_AVC: Final = ("avc1", "avc2", "avc3", "avc4")
_MOST_UNITS: Final = 512


def may_be_skipped(data: bytes, format: str, length_size: int | None) -> bool:
    """Whether the pixels of all other pictures are the same if a sample is not decoded.

    Args:
        data: its bytes.
        format: four-letter code of its sample entry.
        length_size: bytes of the length in front of each NAL unit; None: 4.

    AVC: nal_ref_idc is 0 in every slice (ISO/IEC 14496-10, 7.4.1). Of other codecs, of samples
    with parameter sets, and of damage: False.

    >>> may_be_skipped(bytes.fromhex("00000002 0188"), "avc1", 4)
    True
    >>> may_be_skipped(bytes.fromhex("00000002 4188"), "avc1", 4)
    False
    """
    if format not in _AVC:
        return False
    size = length_size or 4
    at, end, slices = 0, len(data), 0
    for _ in range(_MOST_UNITS):
        if at + size >= end:
            break
        length = int.from_bytes(data[at : at + size], "big")
        at += size
        if not length or at + length > end:
            return False
        head = data[at]
        kind = head & 31
        if 1 <= kind <= 5:
            if head & 0x60:
                return False
            slices += 1
        elif kind in (7, 8, 13, 15):  # parameter sets that later samples need
            return False
        at += length
    return slices > 0 and at == end
