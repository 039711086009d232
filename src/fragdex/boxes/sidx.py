"""sidx: sizes, durations and access points of subsegments (ISO/IEC 14496-12, 8.16.3)."""

from fragdex.boxes.layout import fullbox, rows, u16, u32, u64

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
