"""tmcd: how samples count frames (QuickTime File Format, Timecode Media)."""

from fragdex.boxes.layout import box, raw, u8, u16, u32, where

TMCD = box(
    "tmcd",
    "Time Code Sample Entry",
    "QuickTime File Format, Timecode Media",
    children=True,
    reserved=raw(6),
    data_reference_index=where(u16, default=1),
    reserved_2=u32,
    time_code_flags=u32,
    timescale=u32,
    frame_duration=u32,
    number_of_frames=u8,
    reserved_3=u8,
)
