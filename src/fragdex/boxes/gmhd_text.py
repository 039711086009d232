"""text: where text is drawn (a matrix as in tkhd) (QuickTime File Format, Text Media)."""

from fragdex.boxes.layout import array, box, i32, where

GMHD_TEXT = box(
    "text",
    "Text Media Information",
    "QuickTime File Format, Text Media",
    matrix=where(array(9, i32), default=(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)),
)
