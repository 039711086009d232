"""strk: a part of a track that can be chosen (ISO/IEC 14496-12, 8.14.3)."""

from fragdex.boxes.layout import box

STRK = box(
    "strk",
    "Sub Track",
    "ISO/IEC 14496-12, 8.14.3",
    children=True,
)
