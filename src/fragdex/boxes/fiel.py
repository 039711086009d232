"""fiel: fields in a picture, and their order (QuickTime File Format, Video Sample Description)."""

from fragdex.boxes.layout import box, u8

FIEL = box(
    "fiel",
    "Field Handling",
    "QuickTime File Format, Video Sample Description",
    fields=u8,
    detail=u8,
)
