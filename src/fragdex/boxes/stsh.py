"""stsh: sync samples that can stand for others (ISO/IEC 14496-12, 8.6.3)."""

from fragdex.boxes.layout import fullbox, rows, u32

STSH = fullbox(
    "stsh",
    "Shadow Sync Sample",
    "ISO/IEC 14496-12, 8.6.3",
    entry_count=u32,
    entries=rows("entry_count", ("shadowed_sample_number", ">u4"), ("sync_sample_number", ">u4")),
)
