"""piff_tfxd: time and duration of a fragment, in its track's timescale (MS-SSTR, 2.2.4.4)."""

from fragdex.boxes.layout import u32, u64, uuid_box

PIFF_TFXD = uuid_box(
    "6d1d9b05-42d5-44e6-80e2-141daff757b2",
    "PIFF Fragment Absolute Time",
    "MS-SSTR, 2.2.4.4",
    full=True,
    fragment_absolute_time={0: u32, 1: u64},
    fragment_duration={0: u32, 1: u64},
)
