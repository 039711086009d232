"""wave: what the sound decoder needs (QuickTime File Format, Sound Extensions)."""

from fragdex.boxes.layout import box

WAVE = box(
    "wave",
    "Decompression Parameters",
    "QuickTime File Format, Sound Extensions",
    children=True,
)
