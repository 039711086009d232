"""chnl: where the speakers stand (ISO/IEC 14496-12, 12.2.4).

What follows the first byte counts the channels of the sample entry, so it is kept as bytes.
"""

from fragdex.boxes.layout import fullbox, rest, u8

CHNL = fullbox(
    "chnl",
    "Channel Layout",
    "ISO/IEC 14496-12, 12.2.4",
    stream_structure=u8,
    data=rest,
)
