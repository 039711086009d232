"""mfro: size of the mfra box that ends here (ISO/IEC 14496-12, 8.8.11)."""

from fragdex.boxes.layout import fullbox, u32

MFRO = fullbox(
    "mfro",
    "Movie Fragment Random Access Offset",
    "ISO/IEC 14496-12, 8.8.11",
    size=u32,
)
