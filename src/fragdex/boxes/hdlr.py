"""hdlr: what kind of media, or metadata, this is (ISO/IEC 14496-12, 8.4.3).

QuickTime files put a component type in pre_defined and count the letters of the name in its first
byte; some files close the name with nothing. The field says which: name, counted_name or
unterminated_name.
"""

from fragdex.boxes.layout import (
    Fields,
    array,
    cstring,
    fourcc,
    fullbox,
    pascal,
    text_rest,
    u8,
    u32,
    where,
)


def _closed(fields: Fields, body: memoryview) -> bool:
    return 0 in bytes(body)


def _counted(fields: Fields, body: memoryview) -> bool:
    return len(body) > 0 and body[0] == len(body) - 1 and not _closed(fields, body)


def _open(fields: Fields, body: memoryview) -> bool:
    return "counted_name" not in fields and "name" not in fields and len(body) > 0


HDLR = fullbox(
    "hdlr",
    "Handler Reference",
    "ISO/IEC 14496-12, 8.4.3",
    pre_defined=u32,
    handler_type=fourcc,
    reserved=array(3, u32),
    name=where(cstring, probe=_closed, default=""),
    counted_name=where(pascal(u8), probe=_counted),
    unterminated_name=where(text_rest, probe=_open),
)
