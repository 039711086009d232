"""dmix: how channels are mixed down, kept as bytes (ISO/IEC 14496-12, 12.2.5)."""

from fragdex.boxes.layout import fullbox, rest

DMIX = fullbox(
    "dmix",
    "Downmix Instructions",
    "ISO/IEC 14496-12, 12.2.5",
    data=rest,
)
