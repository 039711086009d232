"""ilst: titles, artists, pictures (QuickTime File Format, Metadata)."""

from fragdex.boxes.layout import box

ILST = box(
    "ilst",
    "Metadata Item List",
    "QuickTime File Format, Metadata",
    children=True,
)
