"""d263: profile and level of H.263 (3GPP TS 26.244, 6.8)."""

from fragdex.boxes.layout import box, fourcc, u8

D263 = box(
    "d263",
    "H.263 Specific",
    "3GPP TS 26.244, 6.8",
    children=True,
    vendor=fourcc,
    decoder_version=u8,
    H263_Level=u8,
    H263_Profile=u8,
)
