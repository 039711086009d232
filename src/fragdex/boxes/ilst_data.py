"""data: type, locale and bytes of a value (QuickTime File Format, Metadata)."""

from fragdex.boxes.layout import box, rest, u32

ILST_DATA = box(
    "data",
    "Metadata Value",
    "QuickTime File Format, Metadata",
    type_indicator=u32,
    locale=u32,
    value=rest,
)
