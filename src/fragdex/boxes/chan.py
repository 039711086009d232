"""chan: where the speakers stand (QuickTime File Format, Sound Extensions)."""

from fragdex.boxes.layout import array, fullbox, items, record, u32

CHAN = fullbox(
    "chan",
    "Audio Channel Layout",
    "QuickTime File Format, Sound Extensions",
    mChannelLayoutTag=u32,
    mChannelBitmap=u32,
    mChannelDescriptions=items(
        u32, record(mChannelLabel=u32, mChannelFlags=u32, mCoordinates=array(3, u32)), 20
    ),
)
