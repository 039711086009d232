"""elng: the language as an RFC 5646 tag (ISO/IEC 14496-12, 8.4.6)."""

from fragdex.boxes.layout import cstring, fullbox

ELNG = fullbox(
    "elng",
    "Extended Language Tag",
    "ISO/IEC 14496-12, 8.4.6",
    extended_language=cstring,
)
