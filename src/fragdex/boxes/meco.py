"""meco: further meta boxes (ISO/IEC 14496-12, 8.11.7)."""

from fragdex.boxes.layout import box

MECO = box(
    "meco",
    "Additional Metadata Container",
    "ISO/IEC 14496-12, 8.11.7",
    children=True,
)
