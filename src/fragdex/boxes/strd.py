"""strd: what a part of a track holds (ISO/IEC 14496-12, 8.14.5)."""

from fragdex.boxes.layout import box

STRD = box(
    "strd",
    "Sub Track Definition",
    "ISO/IEC 14496-12, 8.14.5",
    children=True,
)
