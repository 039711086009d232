"""stri: identity of a part of a track (ISO/IEC 14496-12, 8.14.4)."""

from fragdex.boxes.layout import fourcc, fullbox, greedy, i16, u32

STRI = fullbox(
    "stri",
    "Sub Track Information",
    "ISO/IEC 14496-12, 8.14.4",
    switch_group=i16,
    alternate_group=i16,
    sub_track_ID=u32,
    attribute_list=greedy(fourcc),
)
