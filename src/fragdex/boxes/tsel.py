"""tsel: what tells tracks of a switch group apart (ISO/IEC 14496-12, 8.10.3)."""

from fragdex.boxes.layout import fourcc, fullbox, greedy, i32

TSEL = fullbox(
    "tsel",
    "Track Selection",
    "ISO/IEC 14496-12, 8.10.3",
    switch_group=i32,
    attribute_list=greedy(fourcc),
)
