"""gmhd: media that are neither video nor sound (QuickTime File Format, Base Media)."""

from fragdex.boxes.layout import box

GMHD = box(
    "gmhd",
    "Base Media Information Header",
    "QuickTime File Format, Base Media",
    children=True,
)
