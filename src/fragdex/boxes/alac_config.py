"""alac: frame length, depth and channels of Apple Lossless (Apple Lossless magic cookie)."""

from fragdex.boxes.layout import fullbox, u8, u16, u32

ALAC_CONFIG = fullbox(
    "alac",
    "ALAC Specific",
    "Apple Lossless magic cookie",
    frameLength=u32,
    compatibleVersion=u8,
    bitDepth=u8,
    pb=u8,
    mb=u8,
    kb=u8,
    numChannels=u8,
    maxRun=u16,
    maxFrameBytes=u32,
    avgBitRate=u32,
    sampleRate=u32,
)
