"""moov: all metadata of the movie (ISO/IEC 14496-12, 8.2.1)."""

from fragdex.boxes.layout import box

MOOV = box(
    "moov",
    "Movie",
    "ISO/IEC 14496-12, 8.2.1",
    children=True,
)
