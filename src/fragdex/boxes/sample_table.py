"""The sample table: times, sizes and places of samples, and their properties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fragdex.boxes.kinds import (
    bits,
    fourcc,
    i32,
    i64,
    items,
    packed,
    raw,
    record,
    rest,
    u8,
    u16,
    u32,
)
from fragdex.boxes.layout import Fields, box, fullbox, where
from fragdex.boxes.rows import rows
from fragdex.errors import MalformedBox

STBL = box("stbl", "Sample Table", "ISO/IEC 14496-12, 8.5.1", children=True)
"""Times, sizes and places of all samples."""

STSD = fullbox(
    "stsd",
    "Sample Description",
    "ISO/IEC 14496-12, 8.5.2",
    children=True,
    child_count="entry_count",
    entry_count=u32,
)
"""How samples are coded, one entry for each way."""

STTS = fullbox(
    "stts",
    "Decoding Time to Sample",
    "ISO/IEC 14496-12, 8.6.1.2",
    structure=True,
    entry_count=u32,
    entries=rows("entry_count", ("sample_count", ">u4"), ("sample_delta", ">u4")),
)
"""Durations of samples, run by run.

In ticks of the media's timescale.
"""

CTTS = fullbox(
    "ctts",
    "Composition Time to Sample",
    "ISO/IEC 14496-12, 8.6.1.3",
    structure=True,
    entry_count=u32,
    entries={
        0: rows("entry_count", ("sample_count", ">u4"), ("sample_offset", ">u4")),
        1: rows("entry_count", ("sample_count", ">u4"), ("sample_offset", ">i4")),
    },
)
"""Composition time minus decode time, run by run.

In ticks of the media's timescale; unsigned in version 0, signed in version 1.
"""

CSLG = fullbox(
    "cslg",
    "Composition to Decode",
    "ISO/IEC 14496-12, 8.6.1.4",
    structure=True,
    compositionToDTSShift={0: i32, 1: i64},
    leastDecodeToDisplayDelta={0: i32, 1: i64},
    greatestDecodeToDisplayDelta={0: i32, 1: i64},
    compositionStartTime={0: i32, 1: i64},
    compositionEndTime={0: i32, 1: i64},
)
"""Span of composition times against decode times."""

STSS = fullbox(
    "stss",
    "Sync Sample",
    "ISO/IEC 14496-12, 8.6.2",
    structure=True,
    entry_count=u32,
    entries=rows("entry_count", ("sample_number", ">u4")),
)
"""Numbers of the sync samples, from 1."""

STPS = fullbox(
    "stps",
    "Partial Sync Sample",
    "QuickTime File Format, Sample Table",
    entry_count=u32,
    entries=rows("entry_count", ("sample_number", ">u4")),
)
"""Sync samples of open groups, from 1."""

STSH = fullbox(
    "stsh",
    "Shadow Sync Sample",
    "ISO/IEC 14496-12, 8.6.3",
    entry_count=u32,
    entries=rows("entry_count", ("shadowed_sample_number", ">u4"), ("sync_sample_number", ">u4")),
)
"""Sync samples that can stand for others."""

STSZ = fullbox(
    "stsz",
    "Sample Size",
    "ISO/IEC 14496-12, 8.7.3.2",
    structure=True,
    sample_size=u32,
    sample_count=u32,
    entries=where(
        rows("sample_count", ("entry_size", ">u4")), when=lambda fields: fields["sample_size"] == 0
    ),
)
"""Bytes of each sample, or one size for all."""

STZ2 = fullbox(
    "stz2",
    "Compact Sample Size",
    "ISO/IEC 14496-12, 8.7.3.3",
    structure=True,
    sizes=bits(4, reserved=24, field_size=8),
    sample_count=u32,
    entry_size=packed(
        lambda fields: fields["field_size"] if fields["field_size"] < 32 else 0,
        lambda fields: fields["sample_count"],
    ),
)
"""Bytes of each sample in 4, 8 or 16 bits."""

STSC = fullbox(
    "stsc",
    "Sample To Chunk",
    "ISO/IEC 14496-12, 8.7.4",
    structure=True,
    entry_count=u32,
    entries=rows(
        "entry_count",
        ("first_chunk", ">u4"),
        ("samples_per_chunk", ">u4"),
        ("sample_description_index", ">u4"),
    ),
)
"""Samples per chunk, from a first chunk on."""

STCO = fullbox(
    "stco",
    "Chunk Offset",
    "ISO/IEC 14496-12, 8.7.5",
    structure=True,
    entry_count=u32,
    entries=rows("entry_count", ("chunk_offset", ">u4")),
)
"""Where each chunk starts, bytes from the start of the file."""

CO64 = fullbox(
    "co64",
    "Chunk Large Offset",
    "ISO/IEC 14496-12, 8.7.5",
    structure=True,
    entry_count=u32,
    entries=rows("entry_count", ("chunk_offset", ">u8")),
)
"""Where each chunk starts, bytes from the start of the file."""

SDTP = fullbox(
    "sdtp",
    "Independent and Disposable Samples",
    "ISO/IEC 14496-12, 8.6.4",
    entries=rows(
        None,
        (
            "is_leading:2 sample_depends_on:2 sample_is_depended_on:2 sample_has_redundancy:2",
            ">u1",
        ),
    ),
)
"""What each sample depends on, and what on it."""

STDP = fullbox(
    "stdp",
    "Degradation Priority",
    "ISO/IEC 14496-12, 8.5.3",
    entries=rows(None, ("priority", ">u2")),
)
"""Priority of each sample."""

PADB = fullbox(
    "padb",
    "Padding Bits",
    "ISO/IEC 14496-12, 8.7.6",
    sample_count=u32,
    pad=packed(lambda fields: 4, lambda fields: fields["sample_count"]),
)
"""Bits at the end of each sample that are not media."""

SBGP = fullbox(
    "sbgp",
    "Sample to Group",
    "ISO/IEC 14496-12, 8.9.2",
    grouping_type=fourcc,
    grouping_type_parameter=where(u32, version=(1,)),
    entry_count=u32,
    entries=rows("entry_count", ("sample_count", ">u4"), ("group_description_index", ">u4")),
)
"""The group of each sample, run by run.

Index 0: no group; above 0x10000: a description in this fragment's own sgpd.
"""

_DESCRIPTION = record(
    description_length=where(u32, when=lambda fields: fields["default_length"] == 0),
    data=raw(lambda fields: fields["default_length"] or fields["description_length"]),
)

SGPD = fullbox(
    "sgpd",
    "Sample Group Description",
    "ISO/IEC 14496-12, 8.9.3",
    versions=(0, 1, 2, 3),
    grouping_type=fourcc,
    default_length=where(u32, version=(1, 2, 3)),
    default_group_description_index=where(u32, version=(2, 3)),
    entry_count=where(u32, version=(0,)),
    data=where(rest, version=(0,)),
    entries=where(items(u32, _DESCRIPTION, 0), version=(1, 2, 3)),
)
"""What the groups are.

In version 0 there is no length: entries stand one after the other in data.
"""


def _pattern_width(shift: int) -> Callable[[Fields], int]:
    return lambda fields: 4 << (fields["flags"] >> shift & 3)


def _pattern_column(shift: int) -> Callable[[Fields], str]:
    def code(fields: Fields) -> str:
        if _pattern_width(shift)(fields) == 4:
            raise MalformedBox("pattern numbers of 4 bits mixed with wider ones")
        return f">u{_pattern_width(shift)(fields) // 8}"

    return code


def _in_nibbles(fields: Fields) -> bool:
    """Two 4-bit numbers share a byte; one alone would leave the next at half a byte."""
    return _pattern_width(4)(fields) == 4 and _pattern_width(2)(fields) == 4


def _pattern_indices(fields: Fields) -> int:
    return int(fields["patterns"]["pattern_length"].sum(dtype="u8"))


CSGP = fullbox(
    "csgp",
    "Compact Sample to Group",
    "ISO/IEC 14496-12, 8.9.5",
    versions=(0,),
    grouping_type=fourcc,
    grouping_type_parameter=where(u32, flag=0x40),
    pattern_count=u32,
    patterns=where(
        rows("pattern_count", ("pattern_length:4 sample_count:4", ">u1")), when=_in_nibbles
    ),
    wide_patterns=where(
        rows(
            "pattern_count",
            ("pattern_length", _pattern_column(4)),
            ("sample_count", _pattern_column(2)),
        ),
        name="patterns",
        when=lambda fields: not _in_nibbles(fields),
    ),
    sample_group_description_index=packed(_pattern_width(0), _pattern_indices),
)
"""The group of each sample, by patterns that repeat.

The widths of the two tables are in the lowest six bits of flags: 0 to 3 for 4, 8, 16 or 32 bits.
"""


def _subsample_entries(size: Any) -> Any:
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
    entries={0: _subsample_entries(u16), 1: _subsample_entries(u32)},
)
"""Parts of samples."""

SAIZ = fullbox(
    "saiz",
    "Sample Auxiliary Information Sizes",
    "ISO/IEC 14496-12, 8.7.8",
    aux_info_type=where(fourcc, flag=1),
    aux_info_type_parameter=where(u32, flag=1),
    default_sample_info_size=u8,
    sample_count=u32,
    entries=where(
        rows("sample_count", ("sample_info_size", ">u1")),
        when=lambda fields: fields["default_sample_info_size"] == 0,
    ),
)
"""Bytes of auxiliary information of each sample."""

SAIO = fullbox(
    "saio",
    "Sample Auxiliary Information Offsets",
    "ISO/IEC 14496-12, 8.7.9",
    aux_info_type=where(fourcc, flag=1),
    aux_info_type_parameter=where(u32, flag=1),
    entry_count=u32,
    entries={
        0: rows("entry_count", ("offset", ">u4")),
        1: rows("entry_count", ("offset", ">u8")),
    },
)
"""Where auxiliary information lies."""
