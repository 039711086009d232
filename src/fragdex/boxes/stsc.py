"""stsc: samples per chunk, from a first chunk on (ISO/IEC 14496-12, 8.7.4)."""

from fragdex.boxes.layout import fullbox, rows, u32

STSC = fullbox(
    "stsc",
    "Sample To Chunk",
    "ISO/IEC 14496-12, 8.7.4",
    entry_count=u32,
    entries=rows(
        "entry_count",
        ("first_chunk", ">u4"),
        ("samples_per_chunk", ">u4"),
        ("sample_description_index", ">u4"),
    ),
)
