"""The file as a whole, and its movie: brands, media data, free space, moov."""

from __future__ import annotations

from fragdex.boxes.kinds import array, descriptor, fourcc, greedy, i16, i32, payload, u16, u32, u64
from fragdex.boxes.layout import box, fullbox, where
from fragdex.boxes.rows import rows

FTYP = box(
    "ftyp",
    "File Type",
    "ISO/IEC 14496-12, 4.3",
    major_brand=fourcc,
    minor_version=u32,
    compatible_brands=greedy(fourcc),
)
"""Which specifications a file or segment follows."""

PDIN = fullbox(
    "pdin",
    "Progressive Download Information",
    "ISO/IEC 14496-12, 8.1.3",
    entries=rows(None, ("rate", ">u4"), ("initial_delay", ">u4")),
)
"""How long to wait before playing, by download rate.

Rates in bytes per second, delays in milliseconds.
"""

FREE = box(
    "free",
    "Free Space",
    "ISO/IEC 14496-12, 8.1.2",
    data=payload,
)
"""Bytes without meaning."""

MDAT = box(
    "mdat",
    "Media Data",
    "ISO/IEC 14496-12, 8.1.1",
    data=payload,
)
"""Media data, addressed from elsewhere."""

IMDA = box(
    "imda",
    "Identified Media Data",
    "ISO/IEC 14496-12, 8.1.4",
    imda_identifier=u32,
    data=payload,
)
"""Media data that movie fragments find by a number."""

MOOV = box(
    "moov",
    "Movie",
    "ISO/IEC 14496-12, 8.2.1",
    children=True,
)
"""All metadata of the movie."""

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
"""Timescale and length of the movie.

Times in seconds since 1904-01-01 UTC; duration in ticks of timescale; rate and matrix are
16.16 fixed-point (last matrix column 2.30), volume is 8.8.
"""

IODS = fullbox(
    "iods",
    "Object Descriptor",
    "ISO/IEC 14496-14, 5.1",
    OD=descriptor({}),
)
"""The initial object descriptor of MPEG-4 systems."""

UDTA = box(
    "udta",
    "User Data",
    "ISO/IEC 14496-12, 8.10.1",
    children=True,
)
"""What users and writers add."""
