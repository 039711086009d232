"""esds: how an MPEG-4 elementary stream is decoded (ISO/IEC 14496-14, 6.7.2)."""

from fragdex.boxes.descriptor import descriptor
from fragdex.boxes.layout import bits, fullbox, greedy, pascal, record, u8, u16, u24, u32, where

DECODER_CONFIG = 4
DECODER_SPECIFIC_INFO = 5

_CONFIG = record(
    objectTypeIndication=u8,
    stream=bits(1, streamType=6, upStream=1, reserved=1),
    bufferSizeDB=u24,
    maxBitrate=u32,
    avgBitrate=u32,
    descriptors=greedy(descriptor({})),
)
_STREAM = record(
    ES_ID=u16,
    flags=bits(1, streamDependenceFlag=1, URL_Flag=1, OCRstreamFlag=1, streamPriority=5),
    dependsOn_ES_ID=where(u16, when=lambda stream: stream["streamDependenceFlag"] == 1),
    URLstring=where(pascal(u8), when=lambda stream: stream["URL_Flag"] == 1),
    OCR_ES_Id=where(u16, when=lambda stream: stream["OCRstreamFlag"] == 1),
    descriptors=greedy(descriptor({DECODER_CONFIG: _CONFIG})),
)

ESDS = fullbox(
    "esds",
    "Elementary Stream Descriptor",
    "ISO/IEC 14496-14, 6.7.2",
    ES=descriptor({3: _STREAM}),
)
