"""Films whose sequence parameter sets say less: rewritten bit by bit, at the same length.

What is taken away is made up for by zeros behind the NAL unit, so that no box moves.
"""

from collections.abc import Callable


class Bits:
    """Reads an RBSP and writes what is kept of it."""

    def __init__(self, unit: bytes, head: int) -> None:
        self.head, rbsp = unit[:head], unit[head:]
        while (at := rbsp.find(b"\0\0\3")) >= 0:
            rbsp = rbsp[: at + 2] + b"\1\1\1" + rbsp[at + 3 :]
        rbsp = rbsp.replace(b"\1\1\1", b"")
        self.bits = "".join(f"{byte:08b}" for byte in rbsp)
        self.at = 0

    def u(self, count: int) -> int:
        self.at += count
        return int(self.bits[self.at - count : self.at] or "0", 2)

    def ue(self) -> int:
        zeros = self.bits.index("1", self.at) - self.at
        self.at += zeros
        return self.u(zeros + 1) - 1

    def unit(self, kept: str) -> bytes:
        """The NAL unit with these bits, closed and with its emulation prevention."""
        bits = kept + "1"
        bits += "0" * (-len(bits) % 8)
        out, zeros = bytearray(self.head), 0
        for at in range(0, len(bits), 8):
            byte = int(bits[at : at + 8], 2)
            if zeros >= 2 and byte <= 3:
                out.append(3)
                zeros = 0
            out.append(byte)
            zeros = zeros + 1 if byte == 0 else 0
        return bytes(out)


def _avc_before_vui(bits: Bits) -> None:
    """Up to vui_parameters_present_flag (ISO/IEC 14496-10, 7.3.2.1.1)."""
    profile = bits.u(8)
    bits.u(16)
    bits.ue()
    if profile in (44, 83, 86, 100, 110, 118, 122, 128, 134, 138, 139, 244):
        if bits.ue() == 3:
            bits.u(1)
        bits.ue(), bits.ue(), bits.u(1)
        assert not bits.u(1), "scaling lists"
    bits.ue()
    order = bits.ue()
    if order == 0:
        bits.ue()
    elif order == 1:
        bits.u(1), bits.ue(), bits.ue()
        for _ in range(bits.ue()):
            bits.ue()
    bits.ue(), bits.u(1), bits.ue(), bits.ue()
    if not bits.u(1):
        bits.u(1)
    bits.u(1)
    if bits.u(1):
        for _ in range(4):
            bits.ue()


def _avc_before_restriction(bits: Bits) -> None:
    """From behind vui_parameters_present_flag up to bitstream_restriction_flag (E.1.1)."""
    if bits.u(1) and bits.u(8) == 255:
        bits.u(32)
    if bits.u(1):
        bits.u(1)
    if bits.u(1):
        bits.u(4)
        if bits.u(1):
            bits.u(24)
    if bits.u(1):
        bits.ue(), bits.ue()
    if bits.u(1):
        bits.u(65)
    rates = [_avc_rates(bits) for _ in range(2) if bits.u(1)]
    if rates:
        bits.u(1)
    bits.u(1)


def _avc_rates(bits: Bits) -> bool:
    count = bits.ue() + 1
    bits.u(8)
    for _ in range(count):
        bits.ue(), bits.ue(), bits.u(1)
    bits.u(20)
    return True


def avc_without_vui(unit: bytes) -> bytes:
    """No VUI at all."""
    bits = Bits(unit, 1)
    _avc_before_vui(bits)
    return bits.unit(bits.bits[: bits.at] + "0")


def avc_without_restriction(unit: bytes) -> bytes:
    """A VUI that says nothing of reordering."""
    bits = Bits(unit, 1)
    _avc_before_vui(bits)
    if not bits.u(1):
        return unit
    _avc_before_restriction(bits)
    return bits.unit(bits.bits[: bits.at] + "0")


def avc_with_lie(unit: bytes) -> bytes:
    """A VUI that promises that nothing is reordered."""
    bits = Bits(unit, 1)
    _avc_before_vui(bits)
    if not bits.u(1):
        return unit
    _avc_before_restriction(bits)
    if not bits.u(1):
        return unit
    bits.u(1)
    for _ in range(4):
        bits.ue()
    before = bits.bits[: bits.at]
    bits.ue()
    start = bits.at
    bits.ue()
    return bits.unit(before + "1" + bits.bits[start : bits.at])


def hevc_without_vui(unit: bytes) -> bytes:
    """No VUI, no extension (ISO/IEC 23008-2, 7.3.2.2.1)."""
    bits = Bits(unit, 2)
    bits.u(4)
    layers = bits.u(3)
    bits.u(1)
    _hevc_levels(bits, layers)
    bits.ue()
    if bits.ue() == 3:
        bits.u(1)
    bits.ue(), bits.ue()
    if bits.u(1):
        for _ in range(4):
            bits.ue()
    bits.ue(), bits.ue()
    log2_poc = bits.ue() + 4
    for _ in range(layers + 1 if bits.u(1) else 1):
        bits.ue(), bits.ue(), bits.ue()
    for _ in range(6):
        bits.ue()
    assert not bits.u(1), "scaling lists"
    bits.u(2)
    if bits.u(1):
        bits.u(8), bits.ue(), bits.ue(), bits.u(1)
    _hevc_reference_sets(bits)
    if bits.u(1):
        for _ in range(bits.ue()):
            bits.u(log2_poc + 1)
    bits.u(2)
    return bits.unit(bits.bits[: bits.at] + "00")


def _hevc_levels(bits: Bits, layers: int) -> None:
    bits.u(96)
    present = [(bits.u(1), bits.u(1)) for _ in range(layers)]
    if layers:
        bits.u(2 * (8 - layers))
    for profile, level in present:
        bits.u(88 * profile + 8 * level)


def _hevc_reference_sets(bits: Bits) -> None:
    counts: list[int] = []
    for number in range(bits.ue()):
        if number and bits.u(1):
            bits.u(1), bits.ue()
            used = [bits.u(1) or bits.u(1) for _ in range(counts[-1] + 1)]
            counts.append(sum(used))
            continue
        before, after = bits.ue(), bits.ue()
        for _ in range(before + after):
            bits.ue(), bits.u(1)
        counts.append(before + after)


def sequence_sets(data: bytes) -> set[bytes]:
    """The sequence parameter sets of avcC and hvcC boxes, wherever they are."""
    sets = set()
    for name, is_avc in ((b"avcC", True), (b"hvcC", False)):
        at = data.find(name)
        while at >= 0:
            box = data[at + 4 : at - 4 + int.from_bytes(data[at - 4 : at], "big")]
            sets |= set(_avc_sets(box) if is_avc else _hevc_sets(box))
            at = data.find(name, at + 4)
    return sets


def _avc_sets(box: bytes) -> list[bytes]:
    sets, at = [], 6
    for _ in range(box[5] & 31):
        length = int.from_bytes(box[at : at + 2], "big")
        sets.append(box[at + 2 : at + 2 + length])
        at += 2 + length
    return sets


def _hevc_sets(box: bytes) -> list[bytes]:
    sets, at = [], 23
    for _ in range(box[22]):
        kind, count = box[at] & 63, int.from_bytes(box[at + 1 : at + 3], "big")
        at += 3
        for _ in range(count):
            length = int.from_bytes(box[at : at + 2], "big")
            if kind == 33:
                sets.append(box[at + 2 : at + 2 + length])
            at += 2 + length
    return sets


def rewritten(data: bytes, avc: Callable[[bytes], bytes], hevc: Callable[[bytes], bytes]) -> bytes:
    """The film with other sequence parameter sets, in the same places; also those in samples."""
    sets = sequence_sets(data)
    for unit in sets:
        new = avc(unit) if unit[0] & 31 == 7 else hevc(unit)
        if len(new) <= len(unit):
            data = data.replace(unit, new.ljust(len(unit), b"\0"))
    return data
