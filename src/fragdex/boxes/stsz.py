"""stsz: bytes of each sample, or one size for all (ISO/IEC 14496-12, 8.7.3.2)."""

from fragdex.boxes.layout import fullbox, rows, u32, where

STSZ = fullbox(
    "stsz",
    "Sample Size",
    "ISO/IEC 14496-12, 8.7.3.2",
    sample_size=u32,
    sample_count=u32,
    entries=where(
        rows("sample_count", ("entry_size", ">u4")), when=lambda fields: fields["sample_size"] == 0
    ),
)
