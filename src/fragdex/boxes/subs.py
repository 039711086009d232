"""subs: parts of samples (ISO/IEC 14496-12, 8.7.7)."""

from typing import Any

from fragdex.boxes.layout import fullbox, items, record, u8, u16, u32


def _entries(size: Any) -> Any:
    subsample = record(
        subsample_size=size,
        subsample_priority=u8,
        discardable=u8,
        codec_specific_parameters=u32,
    )
    return items(u32, record(sample_delta=u32, subsamples=items(u16, subsample, 8)), 6)


SUBS = fullbox(
    "subs",
    "Sub-Sample Information",
    "ISO/IEC 14496-12, 8.7.7",
    entries={0: _entries(u16), 1: _entries(u32)},
)
