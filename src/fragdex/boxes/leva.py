"""leva: levels within a subsegment (ISO/IEC 14496-12, 8.8.13)."""

from fragdex.boxes.layout import bits, fourcc, fullbox, items, record, u8, u32, where

LEVA = fullbox(
    "leva",
    "Level Assignment",
    "ISO/IEC 14496-12, 8.8.13",
    levels=items(
        u8,
        record(
            track_ID=u32,
            assignment=bits(1, padding_flag=1, assignment_type=7),
            grouping_type=where(fourcc, when=lambda level: level["assignment_type"] in (0, 1)),
            grouping_type_parameter=where(u32, when=lambda level: level["assignment_type"] == 1),
            sub_track_ID=where(u32, when=lambda level: level["assignment_type"] == 4),
        ),
        5,
    ),
)
