"""mhaP: profiles that can also decode the stream (ISO/IEC 23008-3, 20.6)."""

from fragdex.boxes.layout import box, items, u8

MHAP = box(
    "mhaP",
    "MHA Profile and Level Compatibility",
    "ISO/IEC 23008-3, 20.6",
    compatibleSets=items(u8, u8, 1),
)
