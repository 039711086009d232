"""Samples as elementary streams: Annex B of AVC, HEVC and VVC, low-overhead OBUs of AV1."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from fragdex.boxes import Box
from fragdex.errors import BuildError
from fragdex.indexing.access import leb128

START_CODE: Final = b"\0\0\0\1"
TEMPORAL_DELIMITER: Final = b"\x12\0"
_DELIMITERS: Final = {"avc": 9, "hevc": 35, "vvc": 20}
"""Type of an access unit delimiter (ISO/IEC 14496-10, 23008-2 and 23090-3, table of NAL units)."""
_SEQUENCE_HEADER, _TEMPORAL_DELIMITER = 1, 2


def parameter_sets(entry: Box) -> list[bytes]:
    """The parameter sets of an avcC, hvcC or vvcC, in an order in which they can be read.

    ISO/IEC 14496-15, 5.3.3.1, 8.3.3.1 and 11.2.4.2. Of one that is damaged: none.
    """
    boxes = (entry.find(code) for code in ("avcC", "hvcC", "vvcC"))
    box = next((box for box in boxes if box is not None), None)
    if box is None:
        return []
    names = ("sequenceParameterSets", "sequenceParameterSetExts", "pictureParameterSets")
    sets = [unit for name in names for unit in box.get(name) or ()]
    for array in box.get("arrays") or ():
        sets += array.get("nalus") or filter(None, [array.get("nalu")])
    return [bytes(unit) for unit in sets if len(unit)]


Units = Iterable[tuple[bytes, Sequence[bytes]]]
"""Bytes of each sample, and what of its sample entry stands before it."""


def annexb(samples: Units, family: str, length_size: int) -> bytes:
    """A byte stream of NAL units after start codes.

    Args:
        samples: each with the parameter sets that stand before it, after its delimiter.
        length_size: bytes of the length in front of each NAL unit; 0: start codes, which stay.
    """
    parts: list[bytes] = []
    for data, sets in samples:
        if not length_size:
            parts += [*chain.from_iterable((START_CODE, unit) for unit in sets), data]
            continue
        units = list(nal_units(data, length_size))
        first = 1 if units and _is_delimiter(units[0], family) else 0
        ordered = (*units[:first], *sets, *units[first:])
        parts += chain.from_iterable((START_CODE, unit) for unit in ordered)
    return b"".join(parts)


def nal_units(data: bytes, length_size: int) -> Iterator[bytes]:
    """The NAL units of a sample, without the lengths in front of them."""
    at = 0
    while at < len(data):
        start = at + length_size
        at = start + int.from_bytes(data[at:start], "big")
        if at > len(data) or start > len(data):
            raise BuildError(
                "the length of a NAL unit leads out of its sample",
                expected=f"at most {len(data) - start} bytes",
                found=at - start,
            )
        if at > start:
            yield data[start:at]


def _is_delimiter(unit: bytes, family: str) -> bool:
    if family == "avc":
        kind = unit[0] & 31
    elif family == "hevc":
        kind = unit[0] >> 1 & 63
    else:
        kind = unit[1] >> 3 if len(unit) > 1 else 0
    return kind == _DELIMITERS[family]


def obu(samples: Units) -> bytes:
    """A low-overhead stream of OBUs: each sample after a temporal delimiter, all with a size.

    AV1 bitstream, 5.2; a sample leaves out its delimiter, and may leave out the size of its last
    OBU (AV1 in ISOBMFF, 2.4).

    Args:
        samples: each with the OBUs of the av1C, which stand before it where it has no sequence
            header of its own.
    """
    parts: list[bytes] = []
    for data, config in samples:
        units = [one for one in obus(data) if one[0] != _TEMPORAL_DELIMITER]
        parts.append(TEMPORAL_DELIMITER)
        if all(kind != _SEQUENCE_HEADER for kind, _ in units):
            parts += (unit for whole in config for _, unit in obus(whole))
        parts += (unit for _, unit in units)
    return b"".join(parts)


def obus(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The type of each OBU, and the OBU with its size (AV1 bitstream, 5.3)."""
    at = 0
    while at < len(data):
        head, extended = data[at], data[at] >> 2 & 1
        start = at + 1 + extended
        size, behind = len(data) - start, start
        if head & 2:
            size, used = leb128(data[start : start + 8])
            size, behind = size if used else -1, start + used
        if size < 0 or behind + size > len(data):
            raise BuildError(
                "the size of an OBU leads out of its sample",
                expected=f"at most {max(len(data) - behind, 0)} bytes",
                found=size,
            )
        header = bytes([head | 2]) + data[at + 1 : start] + _as_leb128(size)
        at = behind + size
        yield head >> 3 & 15, header + data[behind:at]


def _as_leb128(value: int) -> bytes:
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*digits, value])
