"""imdt: the imda box of the number given (ISO/IEC 14496-12, 8.7.2)."""

from fragdex.boxes.layout import fullbox, u32

IMDT = fullbox(
    "imdt",
    "Data Entry Imda",
    "ISO/IEC 14496-12, 8.7.2",
    imda_ref_identifier=u32,
)
