"""srat: sampling rate in Hz, for those beyond 16 bits (ISO/IEC 14496-12, 12.2.3)."""

from fragdex.boxes.layout import fullbox, u32

SRAT = fullbox(
    "srat",
    "Sampling Rate",
    "ISO/IEC 14496-12, 12.2.3",
    sampling_rate=u32,
)
