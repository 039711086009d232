"""Which bytes of encrypted samples are clear (ISO/IEC 23001-7, 7.2 and 9.5)."""

from __future__ import annotations

from fragdex.boxes import Box, parse_box
from fragdex.errors import FormatError
from fragdex.fragments.access import CannotTell

__all__ = ["ClearBytes", "Ranges"]

Ranges = list[tuple[int, int]]
"""Starts and stops (exclusive) in a sample, rising; what is clear."""

SUBSAMPLES = 2
"""The flag of a senc whose samples have ranges of clear and protected bytes."""
VECTORS = (0, 8, 16)


class ClearBytes:
    """What is clear in the samples that an encrypted track has in one moof.

    Args:
        moof: the box.
        track: track_ID.
        vector: bytes of the initialization vector of each sample by default; 0: a constant one.

    >>> ClearBytes(bytes.fromhex("00000008 6d6f6f66"), 1, 8).of(0)
    Traceback (most recent call last):
    ...
    fragdex.fragments.sample_bytes.CannotTell: nothing says which of its bytes are encrypted
    """

    def __init__(self, moof: bytes, track: int, vector: int | None) -> None:
        self._parts: list[tuple[int, list[Ranges] | None]] = []
        try:
            trafs = parse_box(moof).find_all("traf")
        except FormatError:
            return
        for traf in trafs:
            tfhd = traf.find("tfhd")
            if tfhd is not None and tfhd.get("track_ID") == track:
                runs = traf.find_all("trun")
                count = sum(int(trun.get("sample_count") or 0) for trun in runs)
                self._parts.append((count, _of_traf(traf, vector)))

    def of(self, number: int) -> Ranges | None:
        """What is clear in a sample.

        Args:
            number: of the sample among those that the track has in the moof, from 0.

        Returns: None where all of it is clear.

        Raises:
            CannotTell: nothing says it.
        """
        for count, ranges in self._parts:
            if number < count:
                if ranges is None:
                    return None
                if number < len(ranges):
                    return ranges[number]
                break
            number -= count
        raise CannotTell("nothing says which of its bytes are encrypted")


def _of_traf(traf: Box, vector: int | None) -> list[Ranges] | None:
    """The clear ranges of each sample, as far as they are said; None: nothing is encrypted."""
    senc = traf.find("senc") or next(
        (one for one in traf.find_all("uuid") if "samples" in one.fields), None
    )
    if senc is None:
        # Without the vectors that each sample needs nothing could be decrypted: all is clear.
        clear = bool(vector) and traf.find("saiz") is None and traf.find("sgpd") is None
        return None if clear else []
    size = senc.get("IV_size") or vector
    if size not in VECTORS or not (senc.get("flags") or 0) & SUBSAMPLES:
        return []
    data, at = bytes(senc["samples"]), 0
    found: list[Ranges] = []
    for _ in range(senc["sample_count"]):
        at += size
        start = at + 2
        at = start + 6 * int.from_bytes(data[at:start], "big")
        if start > len(data) or at > len(data):
            break
        found.append(_ranges(data[start:at]))
    return found


def _ranges(entries: bytes) -> Ranges:
    """BytesOfClearData (16 bits) and BytesOfProtectedData (32 bits), one behind the other."""
    found: Ranges = []
    at = 0
    for place in range(0, len(entries), 6):
        clear = int.from_bytes(entries[place : place + 2], "big")
        if found and found[-1][1] == at:
            found[-1] = found[-1][0], at + clear
        elif clear:
            found.append((at, at + clear))
        at += clear + int.from_bytes(entries[place + 2 : place + 6], "big")
    return found
