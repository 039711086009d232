"""payl: the cue's text (ISO/IEC 14496-30, 7.4)."""

from fragdex.boxes.layout import box, text_rest

PAYL = box(
    "payl",
    "WebVTT Cue Payload",
    "ISO/IEC 14496-30, 7.4",
    cue_text=text_rest,
)
