"""sinf: how samples are protected, and what they were before (ISO/IEC 14496-12, 8.12.1)."""

from fragdex.boxes.layout import box

SINF = box(
    "sinf",
    "Protection Scheme Information",
    "ISO/IEC 14496-12, 8.12.1",
    children=True,
)
