"""clli: brightest pixel and frame, in cd/m2 (ISO/IEC 14496-12, 12.1.6)."""

from fragdex.boxes.layout import box, u16

CLLI = box(
    "clli",
    "Content Light Level",
    "ISO/IEC 14496-12, 12.1.6",
    max_content_light_level=u16,
    max_pic_average_light_level=u16,
)
