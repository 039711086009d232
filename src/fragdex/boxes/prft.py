"""prft: wall-clock time (NTP) at which a sample was made (ISO/IEC 14496-12, 8.16.5)."""

from fragdex.boxes.layout import fullbox, u32, u64

PRFT = fullbox(
    "prft",
    "Producer Reference Time",
    "ISO/IEC 14496-12, 8.16.5",
    reference_track_ID=u32,
    ntp_timestamp=u64,
    media_time={0: u32, 1: u64},
)
