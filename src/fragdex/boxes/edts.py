"""edts: how the media timeline maps to the presentation (ISO/IEC 14496-12, 8.6.5)."""

from fragdex.boxes.layout import box

EDTS = box(
    "edts",
    "Edit",
    "ISO/IEC 14496-12, 8.6.5",
    children=True,
)
