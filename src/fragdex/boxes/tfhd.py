"""tfhd: which track a track fragment continues, and its defaults (ISO/IEC 14496-12, 8.8.7)."""

from fragdex.boxes.layout import fullbox, u32, u64, where

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
    track_ID=u32,
    base_data_offset=where(u64, flag=BASE_DATA_OFFSET),
    sample_description_index=where(u32, flag=SAMPLE_DESCRIPTION_INDEX),
    default_sample_duration=where(u32, flag=DEFAULT_SAMPLE_DURATION),
    default_sample_size=where(u32, flag=DEFAULT_SAMPLE_SIZE),
    default_sample_flags=where(u32, flag=DEFAULT_SAMPLE_FLAGS),
)
