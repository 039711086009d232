"""mdia: what a track is made of (ISO/IEC 14496-12, 8.4.1)."""

from fragdex.boxes.layout import box

MDIA = box(
    "mdia",
    "Media",
    "ISO/IEC 14496-12, 8.4.1",
    children=True,
)
