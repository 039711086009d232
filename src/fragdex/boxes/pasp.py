"""pasp: shape of a pixel (ISO/IEC 14496-12, 12.1.4)."""

from fragdex.boxes.layout import box, u32, where

PASP = box(
    "pasp",
    "Pixel Aspect Ratio",
    "ISO/IEC 14496-12, 12.1.4",
    hSpacing=where(u32, default=1),
    vSpacing=where(u32, default=1),
)
