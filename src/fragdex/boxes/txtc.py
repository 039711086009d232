"""txtC: text that stands before every sample (ISO/IEC 14496-12, 12.5.3)."""

from fragdex.boxes.layout import cstring, fullbox

TXTC = fullbox(
    "txtC",
    "Text Config",
    "ISO/IEC 14496-12, 12.5.3",
    text_config=cstring,
)
