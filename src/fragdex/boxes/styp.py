"""styp: which specifications a segment follows (ISO/IEC 14496-12, 8.16.2)."""

from fragdex.boxes.layout import box, fourcc, greedy, u32

STYP = box(
    "styp",
    "Segment Type",
    "ISO/IEC 14496-12, 8.16.2",
    major_brand=fourcc,
    minor_version=u32,
    compatible_brands=greedy(fourcc),
)
