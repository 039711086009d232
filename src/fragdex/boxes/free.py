"""free: bytes without meaning (ISO/IEC 14496-12, 8.1.2)."""

from fragdex.boxes.layout import box, payload

FREE = box(
    "free",
    "Free Space",
    "ISO/IEC 14496-12, 8.1.2",
    data=payload,
)
