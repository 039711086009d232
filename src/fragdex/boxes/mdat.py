"""mdat: media data, addressed from elsewhere (ISO/IEC 14496-12, 8.1.1)."""

from fragdex.boxes.layout import box, payload

MDAT = box(
    "mdat",
    "Media Data",
    "ISO/IEC 14496-12, 8.1.1",
    data=payload,
)
