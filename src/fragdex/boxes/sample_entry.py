"""sample_entry: the start that all sample entries share, and boxes (ISO/IEC 14496-12, 8.5.2)."""

from fragdex.boxes.layout import box, raw, u16, where

SAMPLE_ENTRY = box(
    "*",
    "Sample Entry",
    "ISO/IEC 14496-12, 8.5.2",
    children=True,
    reserved=raw(6),
    data_reference_index=where(u16, default=1),
)
