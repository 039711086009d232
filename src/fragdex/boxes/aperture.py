"""clef: width and height, 16.16 fixed-point (QuickTime File Format, Track)."""

from fragdex.boxes.layout import fullbox, u32

APERTURE = fullbox(
    "clef",
    "Aperture Dimensions",
    "QuickTime File Format, Track",
    width=u32,
    height=u32,
)
