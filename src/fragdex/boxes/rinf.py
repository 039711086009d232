"""rinf: what a player must do to show restricted samples (ISO/IEC 14496-12, 8.15.3)."""

from fragdex.boxes.layout import box

RINF = box(
    "rinf",
    "Restricted Scheme Information",
    "ISO/IEC 14496-12, 8.15.3",
    children=True,
)
