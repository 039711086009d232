"""Parameter sets among the samples: a decoder that has met some keeps them, flushed or not."""

from __future__ import annotations

from typing import Final

from fragdex.indexing.access import family_of

__all__ = ["ParameterSets", "sets_of"]

ParameterSets = tuple[bytes, ...]
_MOST_UNITS: Final = 64


def sets_of(data: bytes, format: str, length_size: int | None) -> ParameterSets:
    r"""The parameter sets in front of a sample's first slice, as they stand there.

    AVC: ISO/IEC 14496-10, table 7-1; HEVC: ISO/IEC 23008-2, table 7-1; VVC: ISO/IEC 23090-3,
    table 5, without adaptation parameter sets, which are of single pictures.

    Args:
        data: bytes of the sample.
        format: four-letter code of its sample entry.
        length_size: bytes of the length in front of each NAL unit; None: 4.

    >>> sets_of(bytes.fromhex("00000002 6742 00000002 68ce 00000002 6588"), "avc1", 4)
    (b'gB', b'h\xce')
    >>> sets_of(bytes.fromhex("00000002 6588"), "avc1", 4)
    ()
    """
    family = family_of(format)
    size = 4 if length_size is None else length_size
    if family is None or not size:
        return ()
    found: list[bytes] = []
    at, end = 0, len(data)
    for _ in range(_MOST_UNITS):
        start = at + size
        if start + 1 >= end:
            break
        at = start + int.from_bytes(data[at:start], "big")
        if family == "avc":
            kind = data[start] & 31
            is_slice, is_set = 1 <= kind <= 5, kind in (7, 8, 13, 15)
        elif family == "hevc":
            kind = data[start] >> 1 & 63
            is_slice, is_set = kind < 32, 32 <= kind <= 34
        else:
            kind = data[start + 1] >> 3
            is_slice, is_set = kind < 12, 14 <= kind <= 16
        if is_slice or at > end:
            break
        if is_set:
            found.append(data[start:at])
    return tuple(found)
