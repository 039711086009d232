"""metx: timed metadata as XML (ISO/IEC 14496-12, 12.3.3)."""

from fragdex.boxes.layout import box, cstring, raw, u16, where

METX = box(
    "metx",
    "XML Metadata Sample Entry",
    "ISO/IEC 14496-12, 12.3.3",
    children=True,
    reserved=raw(6),
    data_reference_index=where(u16, default=1),
    content_encoding=cstring,
    namespace=cstring,
    schema_location=cstring,
)
