"""ludt: loudness of a track and of its album (ISO/IEC 14496-12, 12.2.7)."""

from fragdex.boxes.layout import box

LUDT = box(
    "ludt",
    "Loudness",
    "ISO/IEC 14496-12, 12.2.7",
    children=True,
)
