"""tapt: sizes of the picture by aperture (QuickTime File Format, Track)."""

from fragdex.boxes.layout import box

TAPT = box(
    "tapt",
    "Track Aperture Mode Dimensions",
    "QuickTime File Format, Track",
    children=True,
)
