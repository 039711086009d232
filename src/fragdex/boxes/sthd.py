"""sthd: subtitles (ISO/IEC 14496-12, 12.6.2)."""

from fragdex.boxes.layout import fullbox

STHD = fullbox(
    "sthd",
    "Subtitle Media Header",
    "ISO/IEC 14496-12, 12.6.2",
)
