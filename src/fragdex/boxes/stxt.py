"""stxt: text (ISO/IEC 14496-12, 12.5.3)."""

from fragdex.boxes.layout import box, cstring, raw, u16, where

STXT = box(
    "stxt",
    "Simple Text Sample Entry",
    "ISO/IEC 14496-12, 12.5.3",
    children=True,
    reserved=raw(6),
    data_reference_index=where(u16, default=1),
    content_encoding=cstring,
    mime_format=cstring,
)
