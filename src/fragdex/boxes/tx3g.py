"""tx3g: text with styles and a place on the picture (3GPP TS 26.245, 5.16)."""

from fragdex.boxes.layout import array, box, i8, i16, raw, record, u8, u16, u32, where

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
