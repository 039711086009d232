"""stss: numbers of the sync samples, from 1 (ISO/IEC 14496-12, 8.6.2)."""

from fragdex.boxes.layout import fullbox, rows, u32

STSS = fullbox(
    "stss",
    "Sync Sample",
    "ISO/IEC 14496-12, 8.6.2",
    entry_count=u32,
    entries=rows("entry_count", ("sample_number", ">u4")),
)
