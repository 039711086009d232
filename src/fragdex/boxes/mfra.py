"""mfra: where to enter the file, fragment by fragment (ISO/IEC 14496-12, 8.8.9)."""

from fragdex.boxes.layout import box

MFRA = box(
    "mfra",
    "Movie Fragment Random Access",
    "ISO/IEC 14496-12, 8.8.9",
    children=True,
)
