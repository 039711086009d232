"""schi: what the scheme needs (ISO/IEC 14496-12, 8.12.6)."""

from fragdex.boxes.layout import box

SCHI = box(
    "schi",
    "Scheme Information",
    "ISO/IEC 14496-12, 8.12.6",
    children=True,
)
