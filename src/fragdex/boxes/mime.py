"""mime: the media type of samples (ISO/IEC 14496-12, 12.3.3)."""

from fragdex.boxes.layout import cstring, fullbox

MIME = fullbox(
    "mime",
    "MIME",
    "ISO/IEC 14496-12, 12.3.3",
    content_type=cstring,
)
