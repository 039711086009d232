"""Writes units of AVC, HEVC and VVC, bit by bit."""

from __future__ import annotations


class Bits:
    """Writes what a unit is made of (ISO/IEC 14496-10, 9.1; ISO/IEC 23008-2, 9.2)."""

    def __init__(self, text: str = "") -> None:
        self.text = text

    @classmethod
    def of(cls, data: bytes, count: int) -> Bits:
        """The first bits of some bytes."""
        return cls(f"{int.from_bytes(data, 'big'):0{8 * len(data)}b}"[:count])

    def put(self, value: int, width: int = 1) -> None:
        self.text += f"{value:0{width}b}" if width else ""

    def ue(self, value: int) -> None:
        digits = f"{value + 1:b}"
        self.text += "0" * (len(digits) - 1) + digits

    def data(self, *, trailing: bool = True) -> bytes:
        """The bits, with trailing ones if they end a unit (7.3.2.11)."""
        text = self.text + "1" * trailing
        text += "0" * (-len(text) % 8)
        return bytes(int(text[at : at + 8], 2) for at in range(0, len(text), 8))

    def unit(self, header: bytes) -> bytes:
        return header + escaped(self.data())


def escaped(data: bytes) -> bytes:
    """With emulation prevention (7.4.1)."""
    output, zeros = bytearray(), 0
    for byte in data:
        if zeros >= 2 and byte <= 3:
            output.append(3)
            zeros = 0
        output.append(byte)
        zeros = 0 if byte else zeros + 1
    return bytes(output)
