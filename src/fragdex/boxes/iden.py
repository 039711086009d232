"""iden: the cue's identifier (ISO/IEC 14496-30, 7.4)."""

from fragdex.boxes.layout import box, text_rest

IDEN = box(
    "iden",
    "WebVTT Cue ID",
    "ISO/IEC 14496-30, 7.4",
    cue_id=text_rest,
)
