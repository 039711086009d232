"""url: a file by its URL; flag 1: this very file, without a URL (ISO/IEC 14496-12, 8.7.2)."""

from fragdex.boxes.layout import Fields, cstring, fullbox, where


def _there(fields: Fields, body: memoryview) -> bool:
    return len(body) > 0


URL = fullbox(
    "url ",
    "Data Entry URL",
    "ISO/IEC 14496-12, 8.7.2",
    location=where(cstring, probe=_there),
)
