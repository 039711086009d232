"""idat: data of items (ISO/IEC 14496-12, 8.11.11)."""

from fragdex.boxes.layout import box, payload

IDAT = box(
    "idat",
    "Item Data",
    "ISO/IEC 14496-12, 8.11.11",
    data=payload,
)
