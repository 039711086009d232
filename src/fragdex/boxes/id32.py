"""ID32: an ID3v2 tag and its language (ID3v2 in MP4)."""

from fragdex.boxes.layout import fullbox, rest, u16

ID32 = fullbox(
    "ID32",
    "ID3v2 Metadata",
    "ID3v2 in MP4",
    language=u16,
    ID3v2_data=rest,
)
