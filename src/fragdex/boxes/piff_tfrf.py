"""piff_tfrf: times and durations of the fragments that come next (MS-SSTR, 2.2.4.5)."""

from fragdex.boxes.layout import rows, u8, uuid_box

PIFF_TFRF = uuid_box(
    "d4807ef2-ca39-4695-8e54-26cb9e46a79f",
    "PIFF Fragment Reference",
    "MS-SSTR, 2.2.4.5",
    full=True,
    fragment_count=u8,
    entries={
        0: rows("fragment_count", ("fragment_absolute_time", ">u4"), ("fragment_duration", ">u4")),
        1: rows("fragment_count", ("fragment_absolute_time", ">u8"), ("fragment_duration", ">u8")),
    },
)
