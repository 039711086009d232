"""bxml: metadata as binary XML (ISO/IEC 14496-12, 8.11.2)."""

from fragdex.boxes.layout import fullbox, rest

BXML = fullbox(
    "bxml",
    "Binary XML",
    "ISO/IEC 14496-12, 8.11.2",
    data=rest,
)
