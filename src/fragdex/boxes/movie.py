"""The file as a whole, its movie and tracks: brands, media data; edits, references, groups."""

from __future__ import annotations

from fragdex.boxes.kinds import (
    array,
    descriptor,
    fourcc,
    greedy,
    i16,
    i32,
    payload,
    rest,
    u16,
    u32,
    u64,
)
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
    structure=True,
    entries=rows(None, ("rate", ">u4"), ("initial_delay", ">u4")),
)
"""How long to wait before playing, by download rate.

Rates in bytes per second, delays in milliseconds.
"""

FREE = box(
    "free",
    "Free Space",
    "ISO/IEC 14496-12, 8.1.2",
    structure=True,
    data=payload,
)
"""Bytes without meaning."""

MDAT = box(
    "mdat",
    "Media Data",
    "ISO/IEC 14496-12, 8.1.1",
    structure=True,
    data=payload,
)
"""Media data, addressed from elsewhere."""

IMDA = box(
    "imda",
    "Identified Media Data",
    "ISO/IEC 14496-12, 8.1.4",
    structure=True,
    imda_identifier=u32,
    data=payload,
)
"""Media data that movie fragments find by a number."""

MOOV = box("moov", "Movie", "ISO/IEC 14496-12, 8.2.1", children=True)
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

IODS = fullbox("iods", "Object Descriptor", "ISO/IEC 14496-14, 5.1", OD=descriptor({}))
"""The initial object descriptor of MPEG-4 systems."""

UDTA = box("udta", "User Data", "ISO/IEC 14496-12, 8.10.1", children=True)
"""What users and writers add."""


TRAK = box("trak", "Track", "ISO/IEC 14496-12, 8.3.1", children=True)
"""One track of the movie."""

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
"""Identity and presentation of a track.

Flags: 1 enabled, 2 in movie, 4 in preview, 8 size is an aspect ratio. Duration in the movie's
timescale; width and height are 16.16 fixed-point, volume is 8.8.
"""

TREF = box("tref", "Track Reference", "ISO/IEC 14496-12, 8.3.3", children=True)
"""Other tracks this one depends on."""

TRACK_REFERENCE = box("*", "Track Reference Type", "ISO/IEC 14496-12, 8.3.3", track_IDs=greedy(u32))
"""The tracks of one kind of reference."""

TRGR = box("trgr", "Track Group", "ISO/IEC 14496-12, 8.3.4", children=True)
"""Groups this track belongs to."""

TRACK_GROUP = fullbox(
    "*",
    "Track Group Type",
    "ISO/IEC 14496-12, 8.3.4",
    track_group_id=u32,
    data=rest,
)
"""A group of tracks; bytes after it depend on its kind."""

TAPT = box("tapt", "Track Aperture Mode Dimensions", "QuickTime File Format, Track", children=True)
"""Sizes of the picture by aperture."""

APERTURE = fullbox(
    "clef",
    "Aperture Dimensions",
    "QuickTime File Format, Track",
    width=u32,
    height=u32,
)
"""Width and height, 16.16 fixed-point."""

LOAD = box(
    "load",
    "Track Load Settings",
    "QuickTime File Format, Track",
    preload_start_time=u32,
    preload_duration=u32,
    preload_flags=u32,
    default_hints=u32,
)
"""What to load before playing."""

EDTS = box("edts", "Edit", "ISO/IEC 14496-12, 8.6.5", children=True)
"""How the media timeline maps to the presentation."""

ELST = fullbox(
    "elst",
    "Edit List",
    "ISO/IEC 14496-12, 8.6.6",
    structure=True,
    entry_count=u32,
    entries={
        0: rows(
            "entry_count",
            ("segment_duration", ">u4"),
            ("media_time", ">i4"),
            ("media_rate_integer", ">i2"),
            ("media_rate_fraction", ">i2"),
        ),
        1: rows(
            "entry_count",
            ("segment_duration", ">u8"),
            ("media_time", ">i8"),
            ("media_rate_integer", ">i2"),
            ("media_rate_fraction", ">i2"),
        ),
    },
)
"""The edits of a track.

segment_duration in the movie's timescale, media_time in the media's (-1: empty edit), rate 16.16.
"""

STRK = box("strk", "Sub Track", "ISO/IEC 14496-12, 8.14.3", children=True)
"""A part of a track that can be chosen."""

STRI = fullbox(
    "stri",
    "Sub Track Information",
    "ISO/IEC 14496-12, 8.14.4",
    switch_group=i16,
    alternate_group=i16,
    sub_track_ID=u32,
    attribute_list=greedy(fourcc),
)
"""Identity of a part of a track."""

STRD = box("strd", "Sub Track Definition", "ISO/IEC 14496-12, 8.14.5", children=True)
"""What a part of a track holds."""

STSG = fullbox(
    "stsg",
    "Sub Track Sample Group",
    "ISO/IEC 14496-12, 8.14.6",
    grouping_type=fourcc,
    item_count=u16,
    entries=rows("item_count", ("group_description_index", ">u4")),
)
"""The sample groups that make a part of a track."""
