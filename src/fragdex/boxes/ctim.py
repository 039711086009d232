"""ctim: the cue's time in the original text (ISO/IEC 14496-30, 7.4)."""

from fragdex.boxes.layout import box, text_rest

CTIM = box(
    "ctim",
    "WebVTT Cue Time",
    "ISO/IEC 14496-30, 7.4",
    cue_current_time=text_rest,
)
