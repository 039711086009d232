"""tref: other tracks this one depends on (ISO/IEC 14496-12, 8.3.3)."""

from fragdex.boxes.layout import box

TREF = box(
    "tref",
    "Track Reference",
    "ISO/IEC 14496-12, 8.3.3",
    children=True,
)
