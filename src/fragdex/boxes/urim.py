"""urim: timed metadata whose form a URI names (ISO/IEC 14496-12, 12.3.3)."""

from fragdex.boxes.layout import box, raw, u16, where

URIM = box(
    "urim",
    "URI Metadata Sample Entry",
    "ISO/IEC 14496-12, 12.3.3",
    children=True,
    reserved=raw(6),
    data_reference_index=where(u16, default=1),
)
