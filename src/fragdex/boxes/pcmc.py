"""pcmC: byte order and depth of PCM (ISO/IEC 23003-5, 5.2)."""

from fragdex.boxes.layout import fullbox, u8

PCMC = fullbox(
    "pcmC",
    "PCM Configuration",
    "ISO/IEC 23003-5, 5.2",
    format_flags=u8,
    PCM_sample_size=u8,
)
