"""kind: the role of a track (ISO/IEC 14496-12, 8.10.4)."""

from fragdex.boxes.layout import cstring, fullbox

KIND = fullbox(
    "kind",
    "Track Kind",
    "ISO/IEC 14496-12, 8.10.4",
    schemeURI=cstring,
    value=cstring,
)
