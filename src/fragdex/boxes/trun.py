"""trun: a run of samples that lie one behind the other (ISO/IEC 14496-12, 8.8.8)."""

from fragdex.boxes.layout import fullbox, i32, rows, u32, where

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
