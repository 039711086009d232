"""Metadata and items of a file, a movie or a track, and what user data hold."""

from __future__ import annotations

from fragdex.box_header import is_chain
from fragdex.boxes.kinds import (
    cstring,
    fourcc,
    greedy,
    i32,
    items,
    pascal,
    payload,
    record,
    rest,
    text_rest,
    u8,
    u16,
    u24,
    u32,
    u64,
)
from fragdex.boxes.layout import Fields, box, fullbox, where


def _is_full(fields: Fields, body: memoryview) -> bool:
    return not (len(body) >= 8 and is_chain(body)) and len(body) >= 4


META = box(
    "meta",
    "Meta",
    "ISO/IEC 14496-12, 8.11.1",
    children=True,
    version=where(u8, probe=_is_full, default=0),
    flags=where(u24, when=lambda fields: "version" in fields),
)
"""Metadata of a file, movie or track.

A full box in ISO files and a plain one in QuickTime files: there the fields version and flags are
absent.
"""

PITM = fullbox("pitm", "Primary Item", "ISO/IEC 14496-12, 8.11.4", item_ID={0: u16, 1: u32})
"""The item that is shown first."""

IINF = fullbox(
    "iinf",
    "Item Information",
    "ISO/IEC 14496-12, 8.11.6",
    children=True,
    child_count="entry_count",
    entry_count={0: u16, 1: u32},
)
"""What the items are."""


def _is_mime(fields: Fields) -> bool:
    return bool(fields["version"] < 2 or fields["item_type"] == "mime")


def _has_encoding(fields: Fields, body: memoryview) -> bool:
    return _is_mime(fields) and 0 in bytes(body)


INFE = fullbox(
    "infe",
    "Item Info Entry",
    "ISO/IEC 14496-12, 8.11.6",
    versions=(0, 1, 2, 3),
    item_ID={0: u16, 3: u32},
    item_protection_index=u16,
    item_type=where(fourcc, version=(2, 3)),
    item_name=cstring,
    content_type=where(cstring, when=_is_mime),
    item_uri_type=where(
        cstring, when=lambda fields: not _is_mime(fields) and fields["item_type"] == "uri "
    ),
    content_encoding=where(cstring, probe=_has_encoding),
    extension=where(rest, version=(1,)),
)
"""What an item is."""

IDAT = box("idat", "Item Data", "ISO/IEC 14496-12, 8.11.11", data=payload)
"""Data of items."""

XML = fullbox("xml ", "XML", "ISO/IEC 14496-12, 8.11.2", xml=text_rest)
"""Metadata as XML."""

BXML = fullbox("bxml", "Binary XML", "ISO/IEC 14496-12, 8.11.2", data=rest)
"""Metadata as binary XML."""

ID32 = fullbox(
    "ID32",
    "ID3v2 Metadata",
    "ID3v2 in MP4",
    language=u16,
    ID3v2_data=rest,
)
"""An ID3v2 tag and its language."""

KEYS = fullbox(
    "keys",
    "Metadata Item Keys",
    "QuickTime File Format, Metadata",
    children=True,
    child_count="entry_count",
    entry_count=u32,
)
"""Names of the items that ilst numbers."""

METADATA_KEY = box(
    "mdta",
    "Metadata Item Key",
    "QuickTime File Format, Metadata",
    key_value=text_rest,
)
"""One key."""

ILST = box("ilst", "Metadata Item List", "QuickTime File Format, Metadata", children=True)
"""Titles, artists, pictures."""

ILST_ITEM = box("*", "Metadata Item", "QuickTime File Format, Metadata", children=True)
"""One item: its values."""

ILST_DATA = box(
    "data",
    "Metadata Value",
    "QuickTime File Format, Metadata",
    type_indicator=u32,
    locale=u32,
    value=rest,
)
"""Type, locale and bytes of a value."""

ILST_TEXT = fullbox("mean", "Metadata Name", "QuickTime File Format, Metadata", text=text_rest)
"""Name space, or name, of an item of one's own."""

MECO = box("meco", "Additional Metadata Container", "ISO/IEC 14496-12, 8.11.7", children=True)
"""Further meta boxes."""

MERE = fullbox(
    "mere",
    "Metabox Relation",
    "ISO/IEC 14496-12, 8.11.8",
    first_metabox_handler_type=fourcc,
    second_metabox_handler_type=fourcc,
    metabox_relation=u8,
)
"""How two meta boxes relate."""

CPRT = fullbox(
    "cprt",
    "Copyright",
    "ISO/IEC 14496-12, 8.10.2",
    language=u16,
    notice=cstring,
)
"""A copyright notice and its language."""

TSEL = fullbox(
    "tsel",
    "Track Selection",
    "ISO/IEC 14496-12, 8.10.3",
    switch_group=i32,
    attribute_list=greedy(fourcc),
)
"""What tells tracks of a switch group apart."""

KIND = fullbox(
    "kind",
    "Track Kind",
    "ISO/IEC 14496-12, 8.10.4",
    schemeURI=cstring,
    value=cstring,
)
"""The role of a track."""

TITLED_TEXT = fullbox(
    "titl",
    "Title and other texts",
    "3GPP TS 26.244, 8",
    language=u16,
    text=cstring,
)
"""A text about the movie and its language."""

NAME = box("name", "Name", "QuickTime File Format, User Data", name=text_rest)
"""A name as plain text."""

CHPL = fullbox(
    "chpl",
    "Chapter List",
    "Nero chapters",
    reserved=where(u32, version=(1,)),
    chapters=items(u8, record(start=u64, title=pascal(u8)), 9),
)
"""Starts and titles of chapters.

start in units of 100 ns.
"""
