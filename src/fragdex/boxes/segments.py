"""Segments for streaming: their brands, indexes, clocks and events."""

from __future__ import annotations

from fragdex.boxes.kinds import bits, cstring, fourcc, greedy, items, record, rest, u16, u32, u64
from fragdex.boxes.layout import box, fullbox, where
from fragdex.boxes.rows import rows

STYP = box(
    "styp",
    "Segment Type",
    "ISO/IEC 14496-12, 8.16.2",
    major_brand=fourcc,
    minor_version=u32,
    compatible_brands=greedy(fourcc),
)
"""Which specifications a segment follows."""

SIDX = fullbox(
    "sidx",
    "Segment Index",
    "ISO/IEC 14496-12, 8.16.3",
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
