"""alis: a file by its alias record (QuickTime File Format, Data Reference)."""

from fragdex.boxes.layout import fullbox, rest

ALIS = fullbox(
    "alis",
    "Data Entry Alias",
    "QuickTime File Format, Data Reference",
    alias=rest,
)
