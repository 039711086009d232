"""vtta: text between cues (ISO/IEC 14496-30, 7.4)."""

from fragdex.boxes.layout import box, text_rest

VTTA = box(
    "vtta",
    "WebVTT Additional Text",
    "ISO/IEC 14496-30, 7.4",
    cue_additional_text=text_rest,
)
