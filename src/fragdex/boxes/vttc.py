"""vttc: one cue of a sample (ISO/IEC 14496-30, 7.4)."""

from fragdex.boxes.layout import box

VTTC = box(
    "vttc",
    "WebVTT Cue",
    "ISO/IEC 14496-30, 7.4",
    children=True,
)
