"""ssix: byte ranges of the levels within subsegments (ISO/IEC 14496-12, 8.16.4)."""

from fragdex.boxes.layout import bits, fullbox, items, record, u32

SSIX = fullbox(
    "ssix",
    "Subsegment Index",
    "ISO/IEC 14496-12, 8.16.4",
    subsegments=items(
        u32, record(ranges=items(u32, record(span=bits(4, level=8, range_size=24)), 4)), 4
    ),
)
