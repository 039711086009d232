"""frma: the sample entry type before protection (ISO/IEC 14496-12, 8.12.2)."""

from fragdex.boxes.layout import box, fourcc

FRMA = box(
    "frma",
    "Original Format",
    "ISO/IEC 14496-12, 8.12.2",
    data_format=fourcc,
)
