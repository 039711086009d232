"""mehd: length of the movie with all its fragments, in its timescale (ISO/IEC 14496-12, 8.8.2)."""

from fragdex.boxes.layout import fullbox, u32, u64

MEHD = fullbox(
    "mehd",
    "Movie Extends Header",
    "ISO/IEC 14496-12, 8.8.2",
    fragment_duration={0: u32, 1: u64},
)
