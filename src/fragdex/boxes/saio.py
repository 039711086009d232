"""saio: where auxiliary information lies (ISO/IEC 14496-12, 8.7.9)."""

from fragdex.boxes.layout import fourcc, fullbox, rows, u32, where

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
