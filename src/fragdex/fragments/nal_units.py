"""NAL units of AVC, HEVC and VVC: whether a picture can be decoded without those before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fragdex.fragments.sample_bytes import CHUNK, Access, SampleBytes

__all__ = ["FAMILIES", "access_of_units", "find_start_code"]

MOST_UNITS = 512
"""Units looked at in front of the first slice; real samples have a dozen."""
MOST_BEFORE = 1 << 18
"""Bytes searched for a start code (Annex B)."""
RECOVERY_POINT = 6
"""payloadType of a recovery point SEI message (ISO/IEC 14496-10, D.1.8)."""
SEI_BYTES = 2048
"""Bytes of an SEI unit that are looked at."""


class _Unit(NamedTuple):
    """A NAL unit: where it begins in its sample, and how long it is."""

    start: int
    size: int


def access_of_units(family: str, sample: SampleBytes, length_size: int) -> Access:
    """What the first slice of a sample says.

    Args:
        family: a key of `FAMILIES`.
        sample: its bytes.
        length_size: bytes of the length in front of each NAL unit; 0: start codes (Annex B).

    Raises:
        CannotTell: the bytes that say it are encrypted.
    """
    return FAMILIES[family](sample, length_size)


def _units(sample: SampleBytes, length_size: int) -> Iterator[_Unit]:
    """The NAL units from the first one on; ends at damage."""
    if not length_size:
        yield from _after_start_codes(sample)
        return
    at = 0
    for _ in range(MOST_UNITS):
        length = sample.take(at, length_size)
        if len(length) < length_size:
            return
        size = int.from_bytes(length, "big")
        at += length_size
        # What runs over its sample is none: the lengths are read at a wrong place.
        if at + size > sample.size:
            return
        if size:
            yield _Unit(at, size)
        at += size


def _after_start_codes(sample: SampleBytes) -> Iterator[_Unit]:
    at = 0
    for _ in range(MOST_UNITS):
        found = find_start_code(sample, at, MOST_BEFORE)
        if found is None or found + 3 >= sample.size:
            return
        yield _Unit(found + 3, sample.size - found - 3)
        at = found + 3


def find_start_code(sample: SampleBytes, at: int, most: int) -> int | None:
    """Place of the next 00 00 01 within `most` bytes, or None."""
    stop = min(sample.size, at + most)
    while at < stop:
        data = sample.take(at, CHUNK)
        place = data.find(b"\0\0\1")
        if place >= 0:
            return at + place
        if len(data) < CHUNK:
            return None
        at += len(data) - 2  # a code may lie over the edge
    return None


def _avc(sample: SampleBytes, length_size: int) -> Access:
    # ISO/IEC 14496-10, 7.4.1.2.4: after an IDR picture nothing refers to what came before. A
    # recovery point SEI with recovery_frame_cnt 0 says the same of all pictures that are shown
    # from its own on (D.2.8); with a higher count they become right later.
    recovers = False
    for unit in _units(sample, length_size):
        head = sample.take(unit.start, 1)
        kind = head[0] & 0x1F if head else 0
        if kind == 5:
            return Access.CLOSED
        if 1 <= kind <= 4:
            return Access.OPEN if recovers else Access.NONE
        if kind == 6:
            recovers = recovers or _recovers(
                sample.clear(unit.start + 1, min(unit.size - 1, SEI_BYTES))
            )
    return Access.NONE


def _recovers(sei: bytes) -> bool:
    """Whether an SEI has a recovery point with recovery_frame_cnt 0, in its first bytes."""
    data = sei.replace(b"\0\0\3", b"\0\0")  # emulation prevention
    at = 0
    while at + 2 <= len(data):
        numbers = []
        for _ in range(2):  # payloadType and payloadSize
            number = 0
            while at < len(data) and data[at] == 0xFF:
                number, at = number + 255, at + 1
            if at == len(data):
                return False
            number, at = number + data[at], at + 1
            numbers.append(number)
        if numbers[0] == RECOVERY_POINT:
            # ue(v): a leading 1 is the number 0.
            return at < len(data) and bool(data[at] & 0x80)
        at += numbers[1]
    return False


def _hevc(sample: SampleBytes, length_size: int) -> Access:
    # ISO/IEC 23008-2, 7.4.2.2: BLA 16 to 18, IDR 19 and 20, CRA 21, reserved IRAP 22 and 23.
    # Leading pictures of a BLA_W_LP or a CRA may not be decodable when one starts there.
    for unit in _units(sample, length_size):
        head = sample.take(unit.start, 2)
        if len(head) < 2:
            break
        kind, layer = head[0] >> 1 & 0x3F, (head[0] & 1) << 5 | head[1] >> 3
        if kind < 32 and not layer:
            if kind in (17, 18, 19, 20):
                return Access.CLOSED
            return Access.OPEN if 16 <= kind <= 23 else Access.NONE
    return Access.NONE


def _vvc(sample: SampleBytes, length_size: int) -> Access:
    # ISO/IEC 23090-3, 7.4.2.2: IDR 7 and 8, CRA 9, gradual refresh 10, reserved IRAP 11.
    for unit in _units(sample, length_size):
        head = sample.take(unit.start, 2)
        if len(head) < 2:
            break
        kind, layer = head[1] >> 3, head[0] & 0x3F
        if kind < 12 and not layer:
            if kind in (7, 8):
                return Access.CLOSED
            return Access.OPEN if kind in (9, 11) else Access.NONE
    return Access.NONE


FAMILIES = {"avc": _avc, "hevc": _hevc, "vvc": _vvc}
"""Family of codecs → what its first slice says."""
