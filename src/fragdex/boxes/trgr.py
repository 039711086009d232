"""trgr: groups this track belongs to (ISO/IEC 14496-12, 8.3.4)."""

from fragdex.boxes.layout import box

TRGR = box(
    "trgr",
    "Track Group",
    "ISO/IEC 14496-12, 8.3.4",
    children=True,
)
