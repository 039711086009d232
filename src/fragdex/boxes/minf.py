"""minf: what the samples are and where they lie (ISO/IEC 14496-12, 8.4.4)."""

from fragdex.boxes.layout import box

MINF = box(
    "minf",
    "Media Information",
    "ISO/IEC 14496-12, 8.4.4",
    children=True,
)
