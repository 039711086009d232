"""Bits of parameter sets of AVC and HEVC, and the beginning of their vui_parameters()."""

from __future__ import annotations

from fragdex.indexing.codecs import BitReader, Missing

Signal = tuple[int, int, int, bool]
"""Code points of primaries, transfer and matrix (ISO/IEC 23091-2); whether 0 is black."""


class Golomb(BitReader):
    """Bits with the numbers of AVC and HEVC (ISO/IEC 14496-10, 9.1)."""

    colour: Signal | None = None

    def ue(self) -> int:
        """Unsigned Exp-Golomb."""
        zeros = 0
        while not self.take(1):
            zeros += 1
            if zeros > 32:
                raise Missing
        return (1 << zeros) - 1 + self.take(zeros)

    def se(self) -> int:
        """Signed Exp-Golomb."""
        code = self.ue()
        return (code + 1) // 2 if code & 1 else -(code // 2)


def payload(unit: bytes, header: int) -> Golomb:
    """What stands after the header of a unit, without emulation prevention."""
    return Golomb(unit[header:].replace(b"\0\0\3", b"\0\0"))


Ticks = tuple[int, int]
"""Units of a tick, and how many of them a second has."""


def pass_signal(bits: Golomb) -> None:
    """The beginning of vui_parameters(), until where chroma lies (AVC and HEVC, E.2.1).

    What it says of colours is `bits.colour` from then on.
    """
    if bits.take(1) and bits.take(8) == 255:
        bits.take(32)
    if bits.take(1):
        bits.take(1)
    if bits.take(1):
        bits.take(3)
        full_range = bool(bits.take(1))
        if bits.take(1):
            bits.colour = bits.take(8), bits.take(8), bits.take(8), full_range
    if bits.take(1):
        bits.ue()
        bits.ue()


def take_ticks(bits: Golomb) -> Ticks | None:
    """A flag, and num_units_in_tick and time_scale that it announces."""
    if not bits.take(1):
        return None
    units, scale = bits.take(32), bits.take(32)
    return (units, scale) if units and scale else None
