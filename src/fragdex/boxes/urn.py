"""urn: a file by its name, and perhaps its URL (ISO/IEC 14496-12, 8.7.2)."""

from fragdex.boxes.layout import Fields, cstring, fullbox, where


def _there(fields: Fields, body: memoryview) -> bool:
    return len(body) > 0


URN = fullbox(
    "urn ",
    "Data Entry URN",
    "ISO/IEC 14496-12, 8.7.2",
    name=where(cstring, probe=_there),
    location=where(cstring, probe=_there),
)
