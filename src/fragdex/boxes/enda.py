"""enda: 1: little-endian samples (QuickTime File Format, Sound Extensions)."""

from fragdex.boxes.layout import box, u16

ENDA = box(
    "enda",
    "Endianness",
    "QuickTime File Format, Sound Extensions",
    littleEndian=u16,
)
