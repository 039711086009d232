"""meta: metadata of a file, movie or track (ISO/IEC 14496-12, 8.11.1).

A full box in ISO files and a plain one in QuickTime files: there the fields version and flags are
absent.
"""

from fragdex.boxes.chain import is_chain
from fragdex.boxes.layout import Fields, box, u8, u24, where


def _full(fields: Fields, body: memoryview) -> bool:
    return not (len(body) >= 8 and is_chain(body)) and len(body) >= 4


META = box(
    "meta",
    "Meta",
    "ISO/IEC 14496-12, 8.11.1",
    children=True,
    version=where(u8, probe=_full, default=0),
    flags=where(u24, when=lambda fields: "version" in fields),
)
