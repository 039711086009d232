"""mett: timed metadata as text (ISO/IEC 14496-12, 12.3.3)."""

from fragdex.boxes.layout import box, cstring, raw, u16, where

METT = box(
    "mett",
    "Text Metadata Sample Entry",
    "ISO/IEC 14496-12, 12.3.3",
    children=True,
    reserved=raw(6),
    data_reference_index=where(u16, default=1),
    content_encoding=cstring,
    mime_format=cstring,
)
