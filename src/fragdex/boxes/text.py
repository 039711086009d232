"""Subtitles and text: WebVTT, XML, plain and timed text."""

from __future__ import annotations

from fragdex.boxes.kinds import (
    array,
    cstring,
    i8,
    i16,
    i32,
    items,
    pascal,
    raw,
    record,
    text_rest,
    u8,
    u16,
    u32,
)
from fragdex.boxes.layout import box, fullbox, where

WVTT = box(
    "wvtt",
    "WebVTT Sample Entry",
    "ISO/IEC 14496-30, 7.5",
    children=True,
    reserved=raw(6),
    data_reference_index=where(u16, default=1),
)
"""Subtitles as WebVTT cues in boxes."""

VTTC_CONFIG = box("vttC", "WebVTT Configuration", "ISO/IEC 14496-30, 7.5", config=text_rest)
"""The file header of a WebVTT text."""

VLAB = box("vlab", "WebVTT Source Label", "ISO/IEC 14496-30, 7.5", source_label=text_rest)
"""Where a WebVTT text comes from."""

VTTC = box("vttc", "WebVTT Cue", "ISO/IEC 14496-30, 7.4", children=True)
"""One cue of a sample."""

VSID = box("vsid", "WebVTT Cue Source ID", "ISO/IEC 14496-30, 7.4", source_ID=i32)
"""Joins the parts of a cue that was split."""

IDEN = box("iden", "WebVTT Cue ID", "ISO/IEC 14496-30, 7.4", cue_id=text_rest)
"""The cue's identifier."""

CTIM = box("ctim", "WebVTT Cue Time", "ISO/IEC 14496-30, 7.4", cue_current_time=text_rest)
"""The cue's time in the original text."""

STTG = box("sttg", "WebVTT Cue Settings", "ISO/IEC 14496-30, 7.4", settings=text_rest)
"""The cue's settings."""

PAYL = box("payl", "WebVTT Cue Payload", "ISO/IEC 14496-30, 7.4", cue_text=text_rest)
"""The cue's text."""

VTTE = box("vtte", "WebVTT Empty Cue", "ISO/IEC 14496-30, 7.4")
"""A sample without cues."""

VTTA = box("vtta", "WebVTT Additional Text", "ISO/IEC 14496-30, 7.4", cue_additional_text=text_rest)
"""Text between cues."""

STPP = box(
    "stpp",
    "XML Subtitle Sample Entry",
    "ISO/IEC 14496-12, 12.6.3",
    children=True,
    reserved=raw(6),
    data_reference_index=where(u16, default=1),
    namespace=cstring,
    schema_location=cstring,
    auxiliary_mime_types=cstring,
)
"""Subtitles as XML."""

SBTT = box(
    "sbtt",
    "Text Subtitle Sample Entry",
    "ISO/IEC 14496-12, 12.6.3",
    children=True,
    reserved=raw(6),
    data_reference_index=where(u16, default=1),
    content_encoding=cstring,
    mime_format=cstring,
)
"""Subtitles as text."""

STXT = box(
    "stxt",
    "Simple Text Sample Entry",
    "ISO/IEC 14496-12, 12.5.3",
    children=True,
    reserved=raw(6),
    data_reference_index=where(u16, default=1),
    content_encoding=cstring,
    mime_format=cstring,
)
"""Text."""

TXTC = fullbox("txtC", "Text Config", "ISO/IEC 14496-12, 12.5.3", text_config=cstring)
"""Text that stands before every sample."""

_BOX = record(top=i16, left=i16, bottom=i16, right=i16)
_STYLE = record(
    startChar=u16,
    endChar=u16,
    font_ID=u16,
    face_style_flags=u8,
    font_size=u8,
    text_color_rgba=array(4, u8),
)

TX3G = box(
    "tx3g",
    "Timed Text Sample Entry",
    "3GPP TS 26.245, 5.16",
    children=True,
    reserved=raw(6),
    data_reference_index=where(u16, default=1),
    displayFlags=u32,
    horizontal_justification=i8,
    vertical_justification=i8,
    background_color_rgba=array(4, u8),
    default_text_box=_BOX,
    default_style=_STYLE,
)
"""Text with styles and a place on the picture."""

FTAB = box(
    "ftab",
    "Font Table",
    "3GPP TS 26.245, 5.16",
    entries=items(u16, record(font_ID=u16, font_name=pascal(u8)), 3),
)
"""The fonts of timed text."""
