"""track_group: a group of tracks; bytes after it depend on its kind (ISO/IEC 14496-12, 8.3.4)."""

from fragdex.boxes.layout import fullbox, rest, u32

TRACK_GROUP = fullbox(
    "*",
    "Track Group Type",
    "ISO/IEC 14496-12, 8.3.4",
    track_group_id=u32,
    data=rest,
)
