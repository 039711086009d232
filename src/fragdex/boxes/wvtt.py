"""wvtt: subtitles as WebVTT cues in boxes (ISO/IEC 14496-30, 7.5)."""

from fragdex.boxes.layout import box, raw, u16, where

WVTT = box(
    "wvtt",
    "WebVTT Sample Entry",
    "ISO/IEC 14496-30, 7.5",
    children=True,
    reserved=raw(6),
    data_reference_index=where(u16, default=1),
)
