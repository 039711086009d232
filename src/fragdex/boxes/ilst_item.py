"""ilst_item: one item: its values (QuickTime File Format, Metadata)."""

from fragdex.boxes.layout import box

ILST_ITEM = box(
    "*",
    "Metadata Item",
    "QuickTime File Format, Metadata",
    children=True,
)
