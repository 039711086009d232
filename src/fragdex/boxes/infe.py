"""infe: what an item is (ISO/IEC 14496-12, 8.11.6)."""

from fragdex.boxes.layout import Fields, cstring, fourcc, fullbox, rest, u16, u32, where


def _mime(fields: Fields) -> bool:
    return bool(fields["version"] < 2 or fields["item_type"] == "mime")


def _more(fields: Fields, body: memoryview) -> bool:
    return _mime(fields) and 0 in bytes(body)


INFE = fullbox(
    "infe",
    "Item Info Entry",
    "ISO/IEC 14496-12, 8.11.6",
    versions=(0, 1, 2, 3),
    item_ID={0: u16, 3: u32},
    item_protection_index=u16,
    item_type=where(fourcc, version=(2, 3)),
    item_name=cstring,
    content_type=where(cstring, when=_mime),
    item_uri_type=where(
        cstring, when=lambda fields: not _mime(fields) and fields["item_type"] == "uri "
    ),
    content_encoding=where(cstring, probe=_more),
    extension=where(rest, version=(1,)),
)
