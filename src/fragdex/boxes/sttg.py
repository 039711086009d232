"""sttg: the cue's settings (ISO/IEC 14496-30, 7.4)."""

from fragdex.boxes.layout import box, text_rest

STTG = box(
    "sttg",
    "WebVTT Cue Settings",
    "ISO/IEC 14496-30, 7.4",
    settings=text_rest,
)
