"""What the numbers of a picture mean: each place that says it, in the order of the standard."""

from __future__ import annotations

from collections.abc import Iterator

from fragdex.boxes import Box
from fragdex.fragments.track_info import Colour
from fragdex.indexing import avc_sets, hevc_sets
from fragdex.indexing.codecs import Missing, body

_AVC_SPS, _HEVC_SPS = 7, 33
MOST_SETS = 64
"""Parameter sets of a sample entry that are looked at."""
UNSAID = 2
"""A code point that says nothing (ISO/IEC 23091-2)."""


def colour_of(entry: Box) -> Colour | None:
    """The colours of a sample entry; None: nothing says them.

    The colr of the track goes before what is coded (ISO/IEC 14496-12, 12.1.5).
    """
    said = [colour for _, colour in colours_of(entry)]
    return next((one for one in said if one.transfer != UNSAID), said[0] if said else None)


def colours_of(entry: Box) -> Iterator[tuple[str, Colour]]:
    """Each place that says colours, and what it says: what counts first is first."""
    for box in entry.find_all("colr"):
        colr = body(box)
        if colr[:4] in (b"nclx", b"nclc") and len(colr) >= (11 if colr[3:4] == b"x" else 10):
            values = [int.from_bytes(colr[at : at + 2], "big") for at in (4, 6, 8)]
            full = bool(colr[10] >> 7) if colr[:4] == b"nclx" else None
            yield "colr", Colour(values[0], values[1], values[2], full)
    for box in entry.find_all("vpcC"):
        vpcc = body(box)
        if len(vpcc) >= 10 and vpcc[0] == 1:
            yield "vpcC", Colour(vpcc[7], vpcc[8], vpcc[9], bool(vpcc[6] & 1))
    for name, units in (("avcC", _avc_units), ("hvcC", _hevc_units)):
        for box in entry.find_all(name):
            for unit in units(body(box)):
                try:
                    read = avc_sets.sps_of if name == "avcC" else hevc_sets.sps_of
                    signal = read(unit)[1].colour
                except (Missing, IndexError):
                    continue
                if signal is not None:
                    yield name, Colour(*signal)


def _avc_units(record: bytes) -> Iterator[bytes]:
    """Sequence parameter sets of an AVCDecoderConfigurationRecord (ISO/IEC 14496-15, 5.3.3.1)."""
    at = 6
    for _ in range(record[5] & 31 if len(record) > 5 else 0):
        size = int.from_bytes(record[at : at + 2], "big")
        unit = record[at + 2 : at + 2 + size]
        if len(unit) >= 4 and unit[0] & 31 == _AVC_SPS:
            yield bytes(unit)
        at += 2 + size


def _hevc_units(record: bytes) -> Iterator[bytes]:
    """Sequence parameter sets of an HEVCDecoderConfigurationRecord (8.3.3.1)."""
    at, left = 23, MOST_SETS
    for _ in range(record[22] if len(record) > 22 else 0):
        kind, count = record[at : at + 1], int.from_bytes(record[at + 1 : at + 3], "big")
        at += 3
        for _ in range(min(count, left)):
            left -= 1
            size = int.from_bytes(record[at : at + 2], "big")
            unit = record[at + 2 : at + 2 + size]
            if kind and kind[0] & 63 == _HEVC_SPS and len(unit) > 4:
                yield bytes(unit)
            at += 2 + size
