"""stpp: subtitles as XML (ISO/IEC 14496-12, 12.6.3)."""

from fragdex.boxes.layout import box, cstring, raw, u16, where

STPP = box(
    "stpp",
    "XML Subtitle Sample Entry",
    "ISO/IEC 14496-12, 12.6.3",
    children=True,
    reserved=raw(6),
    data_reference_index=where(u16, default=1),
    namespace=cstring,
    schema_location=cstring,
    auxiliary_mime_types=cstring,
)
