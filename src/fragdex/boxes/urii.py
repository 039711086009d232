"""uriI: what decoding by that URI needs (ISO/IEC 14496-12, 12.3.3)."""

from fragdex.boxes.layout import fullbox, rest

URII = fullbox(
    "uriI",
    "URI Init",
    "ISO/IEC 14496-12, 12.3.3",
    uri_initialization_data=rest,
)
