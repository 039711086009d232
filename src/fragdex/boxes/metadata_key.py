"""mdta: one key (QuickTime File Format, Metadata)."""

from fragdex.boxes.layout import box, text_rest

METADATA_KEY = box(
    "mdta",
    "Metadata Item Key",
    "QuickTime File Format, Metadata",
    key_value=text_rest,
)
