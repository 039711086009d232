"""mdhd: timescale, length and language of a track's media (ISO/IEC 14496-12, 8.4.2).

language packs three 5-bit letters (each minus 0x60); below 0x400 it is a QuickTime code.
"""

from fragdex.boxes.layout import fullbox, u16, u32, u64, where

MDHD = fullbox(
    "mdhd",
    "Media Header",
    "ISO/IEC 14496-12, 8.4.2",
    creation_time={0: u32, 1: u64},
    modification_time={0: u32, 1: u64},
    timescale=where(u32, default=1000),
    duration={0: u32, 1: u64},
    language=where(u16, default=0x55C4),  # und
    pre_defined=u16,
)
