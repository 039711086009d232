"""trep: what holds for a track's samples in all fragments (ISO/IEC 14496-12, 8.8.15)."""

from fragdex.boxes.layout import fullbox, u32

TREP = fullbox(
    "trep",
    "Track Extension Properties",
    "ISO/IEC 14496-12, 8.8.15",
    children=True,
    track_ID=u32,
)
