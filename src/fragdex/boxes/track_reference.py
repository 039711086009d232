"""track_reference: the tracks of one kind of reference (ISO/IEC 14496-12, 8.3.3)."""

from fragdex.boxes.layout import box, greedy, u32

TRACK_REFERENCE = box(
    "*",
    "Track Reference Type",
    "ISO/IEC 14496-12, 8.3.3",
    track_IDs=greedy(u32),
)
