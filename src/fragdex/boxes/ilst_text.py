"""mean: name space, or name, of an item of one's own (QuickTime File Format, Metadata)."""

from fragdex.boxes.layout import fullbox, text_rest

ILST_TEXT = fullbox(
    "mean",
    "Metadata Name",
    "QuickTime File Format, Metadata",
    text=text_rest,
)
