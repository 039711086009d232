"""iinf: what the items are (ISO/IEC 14496-12, 8.11.6)."""

from fragdex.boxes.layout import fullbox, u16, u32

IINF = fullbox(
    "iinf",
    "Item Information",
    "ISO/IEC 14496-12, 8.11.6",
    children=True,
    child_count="entry_count",
    entry_count={0: u16, 1: u32},
)
