"""imda: media data that movie fragments find by a number (ISO/IEC 14496-12, 8.1.4)."""

from fragdex.boxes.layout import box, payload, u32

IMDA = box(
    "imda",
    "Identified Media Data",
    "ISO/IEC 14496-12, 8.1.4",
    imda_identifier=u32,
    data=payload,
)
