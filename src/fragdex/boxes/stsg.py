"""stsg: the sample groups that make a part of a track (ISO/IEC 14496-12, 8.14.6)."""

from fragdex.boxes.layout import fourcc, fullbox, rows, u16

STSG = fullbox(
    "stsg",
    "Sub Track Sample Group",
    "ISO/IEC 14496-12, 8.14.6",
    grouping_type=fourcc,
    item_count=u16,
    entries=rows("item_count", ("group_description_index", ">u4")),
)
