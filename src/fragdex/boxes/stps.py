"""stps: sync samples of open groups, from 1 (QuickTime File Format, Sample Table)."""

from fragdex.boxes.layout import fullbox, rows, u32

STPS = fullbox(
    "stps",
    "Partial Sync Sample",
    "QuickTime File Format, Sample Table",
    entry_count=u32,
    entries=rows("entry_count", ("sample_number", ">u4")),
)
