"""padb: bits at the end of each sample that are not media (ISO/IEC 14496-12, 8.7.6)."""

from fragdex.boxes.layout import fullbox, packed, u32

PADB = fullbox(
    "padb",
    "Padding Bits",
    "ISO/IEC 14496-12, 8.7.6",
    sample_count=u32,
    pad=packed(lambda fields: 4, lambda fields: fields["sample_count"]),
)
