"""vtte: a sample without cues (ISO/IEC 14496-30, 7.4)."""

from fragdex.boxes.layout import box

VTTE = box(
    "vtte",
    "WebVTT Empty Cue",
    "ISO/IEC 14496-30, 7.4",
)
