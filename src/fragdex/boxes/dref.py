"""dref: the files that hold the media data (ISO/IEC 14496-12, 8.7.2)."""

from fragdex.boxes.layout import fullbox, u32

DREF = fullbox(
    "dref",
    "Data Reference",
    "ISO/IEC 14496-12, 8.7.2",
    children=True,
    child_count="entry_count",
    entry_count=u32,
)
