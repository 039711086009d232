"""trak: one track of the movie (ISO/IEC 14496-12, 8.3.1)."""

from fragdex.boxes.layout import box

TRAK = box(
    "trak",
    "Track",
    "ISO/IEC 14496-12, 8.3.1",
    children=True,
)
