"""snim: the imda box numbered like the movie fragment (ISO/IEC 14496-12, 8.7.2)."""

from fragdex.boxes.layout import fullbox

SNIM = fullbox(
    "snim",
    "Data Entry Seq Num Imda",
    "ISO/IEC 14496-12, 8.7.2",
)
