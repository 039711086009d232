"""stsd: how samples are coded, one entry for each way (ISO/IEC 14496-12, 8.5.2)."""

from fragdex.boxes.layout import fullbox, u32

STSD = fullbox(
    "stsd",
    "Sample Description",
    "ISO/IEC 14496-12, 8.5.2",
    children=True,
    child_count="entry_count",
    entry_count=u32,
)
