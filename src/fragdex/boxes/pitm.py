"""pitm: the item that is shown first (ISO/IEC 14496-12, 8.11.4)."""

from fragdex.boxes.layout import fullbox, u16, u32

PITM = fullbox(
    "pitm",
    "Primary Item",
    "ISO/IEC 14496-12, 8.11.4",
    item_ID={0: u16, 1: u32},
)
