"""Movie fragments (ISO/IEC 14496-12, 8.8), and the segments for streaming that are made of them."""

from __future__ import annotations

from collections.abc import Callable

from fragdex.boxes.kinds import (
    bits,
    cstring,
    fourcc,
    greedy,
    i32,
    items,
    record,
    rest,
    u8,
    u16,
    u32,
    u64,
)
from fragdex.boxes.layout import Fields, box, fullbox, uuid_box, where
from fragdex.boxes.rows import rows

MVEX = box("mvex", "Movie Extends", "ISO/IEC 14496-12, 8.8.1", children=True)
"""The movie continues in fragments."""

MEHD = fullbox(
    "mehd",
    "Movie Extends Header",
    "ISO/IEC 14496-12, 8.8.2",
    structure=True,
    fragment_duration={0: u32, 1: u64},
)
"""Length of the movie with all its fragments, in its timescale."""

TREX = fullbox(
    "trex",
    "Track Extends",
    "ISO/IEC 14496-12, 8.8.3",
    structure=True,
    track_ID=u32,
    default_sample_description_index=u32,
    default_sample_duration=u32,
    default_sample_size=u32,
    default_sample_flags=u32,
)
"""Defaults for the samples of a track in all movie fragments."""

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
"""Levels within a subsegment."""

TREP = fullbox(
    "trep",
    "Track Extension Properties",
    "ISO/IEC 14496-12, 8.8.15",
    children=True,
    track_ID=u32,
)
"""What holds for a track's samples in all fragments."""

ASSP = fullbox(
    "assp",
    "Alternative Startup Sequence Properties",
    "ISO/IEC 14496-12, 8.8.16",
    min_initial_alt_startup_offset=where(i32, version=(0,)),
    entries=where(
        items(u32, record(grouping_type_parameter=u32, min_initial_alt_startup_offset=i32), 8),
        version=(1,),
    ),
)
"""How early playing can start."""

MOOF = box("moof", "Movie Fragment", "ISO/IEC 14496-12, 8.8.4", children=True)
"""A movie fragment, samples that extend the movie."""

MFHD = fullbox(
    "mfhd", "Movie Fragment Header", "ISO/IEC 14496-12, 8.8.5", structure=True, sequence_number=u32
)
"""Number of a movie fragment."""

TRAF = box("traf", "Track Fragment", "ISO/IEC 14496-12, 8.8.6", children=True)
"""What a movie fragment holds of one track."""

BASE_DATA_OFFSET = 0x000001
SAMPLE_DESCRIPTION_INDEX = 0x000002
DEFAULT_SAMPLE_DURATION = 0x000008
DEFAULT_SAMPLE_SIZE = 0x000010
DEFAULT_SAMPLE_FLAGS = 0x000020
DURATION_IS_EMPTY = 0x010000
DEFAULT_BASE_IS_MOOF = 0x020000

TFHD = fullbox(
    "tfhd",
    "Track Fragment Header",
    "ISO/IEC 14496-12, 8.8.7",
    structure=True,
    track_ID=u32,
    base_data_offset=where(u64, flag=BASE_DATA_OFFSET),
    sample_description_index=where(u32, flag=SAMPLE_DESCRIPTION_INDEX),
    default_sample_duration=where(u32, flag=DEFAULT_SAMPLE_DURATION),
    default_sample_size=where(u32, flag=DEFAULT_SAMPLE_SIZE),
    default_sample_flags=where(u32, flag=DEFAULT_SAMPLE_FLAGS),
)
"""Which track a track fragment continues, and its defaults."""

TFDT = fullbox(
    "tfdt",
    "Track Fragment Media Decode Time",
    "ISO/IEC 14496-12, 8.8.12",
    structure=True,
    baseMediaDecodeTime={0: u32, 1: u64},
)
"""Decode time of a track fragment's first sample."""

DATA_OFFSET = 0x000001
FIRST_SAMPLE_FLAGS = 0x000004
SAMPLE_DURATION = 0x000100
SAMPLE_SIZE = 0x000200
SAMPLE_FLAGS = 0x000400
SAMPLE_COMPOSITION_TIME_OFFSET = 0x000800

_BEFORE_OFFSET = (
    ("sample_duration", ">u4", SAMPLE_DURATION),
    ("sample_size", ">u4", SAMPLE_SIZE),
    ("sample_flags", ">u4", SAMPLE_FLAGS),
)

TRUN = fullbox(
    "trun",
    "Track Fragment Run",
    "ISO/IEC 14496-12, 8.8.8",
    structure=True,
    sample_count=u32,
    data_offset=where(i32, flag=DATA_OFFSET),
    first_sample_flags=where(u32, flag=FIRST_SAMPLE_FLAGS),
    samples={
        # The composition offset is unsigned in version 0 and signed from version 1 on.
        0: rows(
            "sample_count",
            *_BEFORE_OFFSET,
            ("sample_composition_time_offset", ">u4", SAMPLE_COMPOSITION_TIME_OFFSET),
        ),
        1: rows(
            "sample_count",
            *_BEFORE_OFFSET,
            ("sample_composition_time_offset", ">i4", SAMPLE_COMPOSITION_TIME_OFFSET),
        ),
    },
)
"""A run of samples that lie one after the other."""

PIFF_TFXD = uuid_box(
    "6d1d9b05-42d5-44e6-80e2-141daff757b2",
    "PIFF Fragment Absolute Time",
    "MS-SSTR, 2.2.4.4",
    structure=True,
    full=True,
    fragment_absolute_time={0: u32, 1: u64},
    fragment_duration={0: u32, 1: u64},
)
"""Time and duration of a fragment, in its track's timescale."""

PIFF_TFRF = uuid_box(
    "d4807ef2-ca39-4695-8e54-26cb9e46a79f",
    "PIFF Fragment Reference",
    "MS-SSTR, 2.2.4.5",
    structure=True,
    full=True,
    fragment_count=u8,
    entries={
        0: rows("fragment_count", ("fragment_absolute_time", ">u4"), ("fragment_duration", ">u4")),
        1: rows("fragment_count", ("fragment_absolute_time", ">u8"), ("fragment_duration", ">u8")),
    },
)
"""Times and durations of the fragments that come next."""

MFRA = box("mfra", "Movie Fragment Random Access", "ISO/IEC 14496-12, 8.8.9", children=True)
"""Where to enter the file, fragment by fragment."""


def _number_column(name: str) -> Callable[[Fields], str]:
    return lambda fields: f">u{fields[name] + 1}" if fields[name] != 2 else "u3"


_NUMBERS = (
    ("traf_number", _number_column("length_size_of_traf_num")),
    ("trun_number", _number_column("length_size_of_trun_num")),
    ("sample_number", _number_column("length_size_of_sample_num")),
)

TFRA = fullbox(
    "tfra",
    "Track Fragment Random Access",
    "ISO/IEC 14496-12, 8.8.10",
    structure=True,
    track_ID=u32,
    lengths=bits(
        4,
        reserved=26,
        length_size_of_traf_num=2,
        length_size_of_trun_num=2,
        length_size_of_sample_num=2,
    ),
    number_of_entry=u32,
    entries={
        0: rows("number_of_entry", ("time", ">u4"), ("moof_offset", ">u4"), *_NUMBERS),
        1: rows("number_of_entry", ("time", ">u8"), ("moof_offset", ">u8"), *_NUMBERS),
    },
)
"""Times and places of a track's sync samples.

The last three columns are 1 to 4 bytes wide, as the length_size fields say.
"""

MFRO = fullbox(
    "mfro",
    "Movie Fragment Random Access Offset",
    "ISO/IEC 14496-12, 8.8.11",
    structure=True,
    size=u32,
)
"""Size of the mfra box that ends here."""


STYP = box(
    "styp",
    "Segment Type",
    "ISO/IEC 14496-12, 8.16.2",
    structure=True,
    major_brand=fourcc,
    minor_version=u32,
    compatible_brands=greedy(fourcc),
)
"""Which specifications a segment follows."""

SIDX = fullbox(
    "sidx",
    "Segment Index",
    "ISO/IEC 14496-12, 8.16.3",
    structure=True,
    reference_ID=u32,
    timescale=u32,
    earliest_presentation_time={0: u32, 1: u64},
    first_offset={0: u32, 1: u64},
    reserved=u16,
    reference_count=u16,
    references=rows(
        "reference_count",
        ("reference_type:1 referenced_size:31", ">u4"),
        ("subsegment_duration", ">u4"),
        ("starts_with_SAP:1 SAP_type:3 SAP_delta_time:28", ">u4"),
    ),
)
"""Sizes, durations and access points of subsegments."""

SSIX = fullbox(
    "ssix",
    "Subsegment Index",
    "ISO/IEC 14496-12, 8.16.4",
    structure=True,
    subsegments=items(
        u32, record(ranges=items(u32, record(span=bits(4, level=8, range_size=24)), 4)), 4
    ),
)
"""Byte ranges of the levels within subsegments."""

PRFT = fullbox(
    "prft",
    "Producer Reference Time",
    "ISO/IEC 14496-12, 8.16.5",
    reference_track_ID=u32,
    ntp_timestamp=u64,
    media_time={0: u32, 1: u64},
)
"""Wall-clock time (NTP) at which a sample was made."""

EMSG = fullbox(
    "emsg",
    "Event Message",
    "ISO/IEC 23009-1, 5.10.3.3",
    scheme_id_uri=where(cstring, version=(0,)),
    value=where(cstring, version=(0,)),
    timescale=u32,
    presentation_time_delta=where(u32, version=(0,)),
    presentation_time=where(u64, version=(1,)),
    event_duration=u32,
    id=u32,
    scheme_id_uri_1=where(cstring, version=(1,), name="scheme_id_uri"),
    value_1=where(cstring, version=(1,), name="value"),
    message_data=rest,
)
"""An event on the presentation's timeline."""
