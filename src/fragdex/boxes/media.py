"""The media of a track: its clock, its kind, and where its data lie."""

from __future__ import annotations

from fragdex.boxes.kinds import (
    array,
    cstring,
    fourcc,
    i16,
    i32,
    pascal,
    rest,
    text_rest,
    u8,
    u16,
    u32,
    u64,
)
from fragdex.boxes.layout import Fields, box, fullbox, where

MDIA = box("mdia", "Media", "ISO/IEC 14496-12, 8.4.1", children=True)
"""What a track is made of."""

MDHD = fullbox(
    "mdhd",
    "Media Header",
    "ISO/IEC 14496-12, 8.4.2",
    creation_time={0: u32, 1: u64},
    modification_time={0: u32, 1: u64},
    timescale=where(u32, default=1000),
    duration={0: u32, 1: u64},
    language=where(u16, default=0x55C4),  # und
    pre_defined=u16,
)
"""Timescale, length and language of a track's media.

language packs three 5-bit letters (each minus 0x60); below 0x400 it is a QuickTime code.
"""


def _is_closed(fields: Fields, body: memoryview) -> bool:
    return 0 in bytes(body)


def _is_counted(fields: Fields, body: memoryview) -> bool:
    return len(body) > 0 and body[0] == len(body) - 1 and not _is_closed(fields, body)


def _is_open(fields: Fields, body: memoryview) -> bool:
    return "counted_name" not in fields and "name" not in fields and len(body) > 0


HDLR = fullbox(
    "hdlr",
    "Handler Reference",
    "ISO/IEC 14496-12, 8.4.3",
    pre_defined=u32,
    handler_type=fourcc,
    reserved=array(3, u32),
    name=where(cstring, probe=_is_closed, default=""),
    counted_name=where(pascal(u8), probe=_is_counted),
    unterminated_name=where(text_rest, probe=_is_open),
)
"""What kind of media, or metadata, this is.

QuickTime files put a component type in pre_defined and count the letters of the name in its first
byte; some files close the name with nothing. The field says which: name, counted_name or
unterminated_name.
"""

ELNG = fullbox(
    "elng",
    "Extended Language Tag",
    "ISO/IEC 14496-12, 8.4.6",
    extended_language=cstring,
)
"""The language as an RFC 5646 tag."""

MINF = box("minf", "Media Information", "ISO/IEC 14496-12, 8.4.4", children=True)
"""What the samples are and where they lie."""

VMHD = fullbox(
    "vmhd",
    "Video Media Header",
    "ISO/IEC 14496-12, 12.1.2",
    graphicsmode=u16,
    opcolor=array(3, u16),
)
"""How video is drawn."""

SMHD = fullbox(
    "smhd",
    "Sound Media Header",
    "ISO/IEC 14496-12, 12.2.2",
    balance=i16,
    reserved=u16,
)
"""Where sound stands between the speakers (8.8 fixed-point)."""

HMHD = fullbox(
    "hmhd",
    "Hint Media Header",
    "ISO/IEC 14496-12, 12.4.2",
    maxPDUsize=u16,
    avgPDUsize=u16,
    maxbitrate=u32,
    avgbitrate=u32,
    reserved=u32,
)
"""Sizes and rates of packets."""

NMHD = fullbox("nmhd", "Null Media Header", "ISO/IEC 14496-12, 8.4.5.2")
"""Media that need no header of their own."""

STHD = fullbox("sthd", "Subtitle Media Header", "ISO/IEC 14496-12, 12.6.2")
"""Subtitles."""

GMHD = box(
    "gmhd",
    "Base Media Information Header",
    "QuickTime File Format, Base Media",
    children=True,
)
"""Media that are neither video nor sound."""

GMIN = fullbox(
    "gmin",
    "Base Media Info",
    "QuickTime File Format, Base Media",
    graphicsmode=u16,
    opcolor=array(3, u16),
    balance=i16,
    reserved=u16,
)
"""How base media are drawn and heard."""

GMHD_TMCD = box(
    "tmcd",
    "Time Code Media Information",
    "QuickTime File Format, Timecode Media",
    children=True,
)
"""How a time code is shown."""

TCMI = fullbox(
    "tcmi",
    "Time Code Media Info",
    "QuickTime File Format, Timecode Media",
    text_font=u16,
    text_face=u16,
    text_size=u16,
    reserved=u16,
    text_color=array(3, u16),
    background_color=array(3, u16),
    font_name=pascal(u8),
)
"""Font and colours of a shown time code."""

GMHD_TEXT = box(
    "text",
    "Text Media Information",
    "QuickTime File Format, Text Media",
    matrix=where(array(9, i32), default=(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)),
)
"""Where text is drawn (a matrix as in tkhd)."""

DINF = box("dinf", "Data Information", "ISO/IEC 14496-12, 8.7.1", children=True)
"""Where the media data are."""

DREF = fullbox(
    "dref",
    "Data Reference",
    "ISO/IEC 14496-12, 8.7.2",
    children=True,
    child_count="entry_count",
    entry_count=u32,
)
"""The files that hold the media data."""


def _is_there(fields: Fields, body: memoryview) -> bool:
    return len(body) > 0


URL = fullbox(
    "url ",
    "Data Entry URL",
    "ISO/IEC 14496-12, 8.7.2",
    location=where(cstring, probe=_is_there),
)
"""A file by its URL; flag 1: this very file, without a URL."""

URN = fullbox(
    "urn ",
    "Data Entry URN",
    "ISO/IEC 14496-12, 8.7.2",
    name=where(cstring, probe=_is_there),
    location=where(cstring, probe=_is_there),
)
"""A file by its name, and perhaps its URL."""

IMDT = fullbox("imdt", "Data Entry Imda", "ISO/IEC 14496-12, 8.7.2", imda_ref_identifier=u32)
"""The imda box of the number given."""

SNIM = fullbox("snim", "Data Entry Seq Num Imda", "ISO/IEC 14496-12, 8.7.2")
"""The imda box numbered like the movie fragment."""

ALIS = fullbox("alis", "Data Entry Alias", "QuickTime File Format, Data Reference", alias=rest)
"""A file by its alias record."""
