"""btrt: decoding buffer in bytes, bit rates per second (ISO/IEC 14496-12, 8.5.2)."""

from fragdex.boxes.layout import box, u32

BTRT = box(
    "btrt",
    "Bit Rate",
    "ISO/IEC 14496-12, 8.5.2",
    bufferSizeDB=u32,
    maxBitrate=u32,
    avgBitrate=u32,
)
