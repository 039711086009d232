"""mvhd: timescale and length of the movie (ISO/IEC 14496-12, 8.2.2).

Times in seconds since 1904-01-01 UTC; duration in ticks of timescale; rate and matrix are
16.16 fixed-point (last matrix column 2.30), volume is 8.8.
"""

from fragdex.boxes.layout import array, fullbox, i16, i32, u16, u32, u64, where

MVHD = fullbox(
    "mvhd",
    "Movie Header",
    "ISO/IEC 14496-12, 8.2.2",
    creation_time={0: u32, 1: u64},
    modification_time={0: u32, 1: u64},
    timescale=where(u32, default=1000),
    duration={0: u32, 1: u64},
    rate=where(i32, default=0x10000),
    volume=where(i16, default=0x100),
    reserved=u16,
    reserved_2=array(2, u32),
    matrix=where(array(9, i32), default=(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)),
    pre_defined=array(6, u32),
    next_track_ID=where(u32, default=1),
)
