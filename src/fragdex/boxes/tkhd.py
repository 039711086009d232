"""tkhd: identity and presentation of a track (ISO/IEC 14496-12, 8.3.2).

Flags: 1 enabled, 2 in movie, 4 in preview, 8 size is an aspect ratio. Duration in the movie's
timescale; width and height are 16.16 fixed-point, volume is 8.8.
"""

from fragdex.boxes.layout import array, fullbox, i16, i32, u16, u32, u64, where

TKHD = fullbox(
    "tkhd",
    "Track Header",
    "ISO/IEC 14496-12, 8.3.2",
    creation_time={0: u32, 1: u64},
    modification_time={0: u32, 1: u64},
    track_ID=u32,
    reserved=u32,
    duration={0: u32, 1: u64},
    reserved_2=array(2, u32),
    layer=i16,
    alternate_group=i16,
    volume=i16,
    reserved_3=u16,
    matrix=where(array(9, i32), default=(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)),
    width=u32,
    height=u32,
)
