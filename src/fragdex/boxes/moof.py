"""moof: a movie fragment, samples that extend the movie (ISO/IEC 14496-12, 8.8.4)."""

from fragdex.boxes.layout import box

MOOF = box("moof", "Movie Fragment", "ISO/IEC 14496-12, 8.8.4", children=True)
