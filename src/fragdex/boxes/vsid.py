"""vsid: joins the parts of a cue that was split (ISO/IEC 14496-30, 7.4)."""

from fragdex.boxes.layout import box, i32

VSID = box(
    "vsid",
    "WebVTT Cue Source ID",
    "ISO/IEC 14496-30, 7.4",
    source_ID=i32,
)
