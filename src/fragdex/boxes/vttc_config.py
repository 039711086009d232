"""vttC: the file header of a WebVTT text (ISO/IEC 14496-30, 7.5)."""

from fragdex.boxes.layout import box, text_rest

VTTC_CONFIG = box(
    "vttC",
    "WebVTT Configuration",
    "ISO/IEC 14496-30, 7.5",
    config=text_rest,
)
