"""keys: names of the items that ilst numbers (QuickTime File Format, Metadata)."""

from fragdex.boxes.layout import fullbox, u32

KEYS = fullbox(
    "keys",
    "Metadata Item Keys",
    "QuickTime File Format, Metadata",
    children=True,
    child_count="entry_count",
    entry_count=u32,
)
