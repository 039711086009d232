"""mfhd: number of a movie fragment (ISO/IEC 14496-12, 8.8.5)."""

from fragdex.boxes.layout import fullbox, u32

MFHD = fullbox("mfhd", "Movie Fragment Header", "ISO/IEC 14496-12, 8.8.5", sequence_number=u32)
