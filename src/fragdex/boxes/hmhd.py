"""hmhd: sizes and rates of packets (ISO/IEC 14496-12, 12.4.2)."""

from fragdex.boxes.layout import fullbox, u16, u32

HMHD = fullbox(
    "hmhd",
    "Hint Media Header",
    "ISO/IEC 14496-12, 12.4.2",
    maxPDUsize=u16,
    avgPDUsize=u16,
    maxbitrate=u32,
    avgbitrate=u32,
    reserved=u32,
)
