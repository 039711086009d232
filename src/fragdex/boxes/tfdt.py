"""tfdt: decode time of a track fragment's first sample (ISO/IEC 14496-12, 8.8.12)."""

from fragdex.boxes.layout import fullbox, u32, u64

TFDT = fullbox(
    "tfdt",
    "Track Fragment Media Decode Time",
    "ISO/IEC 14496-12, 8.8.12",
    baseMediaDecodeTime={0: u32, 1: u64},
)
