"""stz2: bytes of each sample in 4, 8 or 16 bits (ISO/IEC 14496-12, 8.7.3.3)."""

from fragdex.boxes.layout import bits, fullbox, packed, u32

STZ2 = fullbox(
    "stz2",
    "Compact Sample Size",
    "ISO/IEC 14496-12, 8.7.3.3",
    sizes=bits(4, reserved=24, field_size=8),
    sample_count=u32,
    entry_size=packed(
        lambda fields: fields["field_size"] if fields["field_size"] < 32 else 0,
        lambda fields: fields["sample_count"],
    ),
)
