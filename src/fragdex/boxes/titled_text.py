"""titl: a text about the movie and its language (3GPP TS 26.244, 8)."""

from fragdex.boxes.layout import cstring, fullbox, u16

TITLED_TEXT = fullbox(
    "titl",
    "Title and other texts",
    "3GPP TS 26.244, 8",
    language=u16,
    text=cstring,
)
