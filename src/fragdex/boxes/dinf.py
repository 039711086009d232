"""dinf: where the media data are (ISO/IEC 14496-12, 8.7.1)."""

from fragdex.boxes.layout import box

DINF = box(
    "dinf",
    "Data Information",
    "ISO/IEC 14496-12, 8.7.1",
    children=True,
)
