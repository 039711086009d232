"""uri: the URI that names the form of timed metadata (ISO/IEC 14496-12, 12.3.3)."""

from fragdex.boxes.layout import cstring, fullbox

URI = fullbox(
    "uri ",
    "URI",
    "ISO/IEC 14496-12, 12.3.3",
    theURI=cstring,
)
