"""ftyp: which specifications a file or segment follows (ISO/IEC 14496-12, 4.3)."""

from fragdex.boxes.layout import box, fourcc, greedy, u32

FTYP = box(
    "ftyp",
    "File Type",
    "ISO/IEC 14496-12, 4.3",
    major_brand=fourcc,
    minor_version=u32,
    compatible_brands=greedy(fourcc),
)
