"""ftab: the fonts of timed text (3GPP TS 26.245, 5.16)."""

from fragdex.boxes.layout import box, items, pascal, record, u8, u16

FTAB = box(
    "ftab",
    "Font Table",
    "3GPP TS 26.245, 5.16",
    entries=items(u16, record(font_ID=u16, font_name=pascal(u8)), 3),
)
