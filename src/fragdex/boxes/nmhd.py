"""nmhd: media that need no header of their own (ISO/IEC 14496-12, 8.4.5.2)."""

from fragdex.boxes.layout import fullbox

NMHD = fullbox(
    "nmhd",
    "Null Media Header",
    "ISO/IEC 14496-12, 8.4.5.2",
)
