"""co64: where each chunk starts, bytes from the start of the file (ISO/IEC 14496-12, 8.7.5)."""

from fragdex.boxes.layout import fullbox, rows, u32

CO64 = fullbox(
    "co64",
    "Chunk Large Offset",
    "ISO/IEC 14496-12, 8.7.5",
    entry_count=u32,
    entries=rows("entry_count", ("chunk_offset", ">u8")),
)
