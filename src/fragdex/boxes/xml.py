"""xml: metadata as XML (ISO/IEC 14496-12, 8.11.2)."""

from fragdex.boxes.layout import fullbox, text_rest

XML = fullbox(
    "xml ",
    "XML",
    "ISO/IEC 14496-12, 8.11.2",
    xml=text_rest,
)
