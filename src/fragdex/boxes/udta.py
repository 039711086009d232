"""udta: what users and writers add (ISO/IEC 14496-12, 8.10.1)."""

from fragdex.boxes.layout import box

UDTA = box(
    "udta",
    "User Data",
    "ISO/IEC 14496-12, 8.10.1",
    children=True,
)
