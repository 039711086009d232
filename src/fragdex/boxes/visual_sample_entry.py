"""visual_sample_entry: how the samples of a video track are coded (ISO/IEC 14496-12, 12.1.3).

Resolutions are 16.16 fixed-point pixels per inch; compressorname counts its letters in the first
byte.
"""

from fragdex.boxes.layout import array, box, i16, raw, u16, u32, where

VISUAL_SAMPLE_ENTRY = box(
    "*",
    "Visual Sample Entry",
    "ISO/IEC 14496-12, 12.1.3",
    children=True,
    reserved=raw(6),
    data_reference_index=where(u16, default=1),
    pre_defined=u16,
    reserved_2=u16,
    pre_defined_2=array(3, u32),
    width=u16,
    height=u16,
    horizresolution=where(u32, default=0x480000),
    vertresolution=where(u32, default=0x480000),
    reserved_3=u32,
    frame_count=where(u16, default=1),
    compressorname=raw(32),
    depth=where(u16, default=24),
    pre_defined_3=where(i16, default=-1),
)
