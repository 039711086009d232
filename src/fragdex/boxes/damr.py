"""damr: modes of AMR (3GPP TS 26.244, 6.7)."""

from fragdex.boxes.layout import box, fourcc, u8, u16

DAMR = box(
    "damr",
    "AMR Specific",
    "3GPP TS 26.244, 6.7",
    vendor=fourcc,
    decoder_version=u8,
    mode_set=u16,
    mode_change_period=u8,
    frames_per_sample=u8,
)
