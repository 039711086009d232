"""stbl: times, sizes and places of all samples (ISO/IEC 14496-12, 8.5.1)."""

from fragdex.boxes.layout import box

STBL = box(
    "stbl",
    "Sample Table",
    "ISO/IEC 14496-12, 8.5.1",
    children=True,
)
