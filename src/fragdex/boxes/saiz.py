"""saiz: bytes of auxiliary information of each sample (ISO/IEC 14496-12, 8.7.8)."""

from fragdex.boxes.layout import fourcc, fullbox, rows, u8, u32, where

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
