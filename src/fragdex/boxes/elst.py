"""elst: the edits of a track (ISO/IEC 14496-12, 8.6.6).

segment_duration in the movie's timescale, media_time in the media's (-1: empty edit), rate 16.16.
"""

from fragdex.boxes.layout import fullbox, rows, u32

ELST = fullbox(
    "elst",
    "Edit List",
    "ISO/IEC 14496-12, 8.6.6",
    entry_count=u32,
    entries={
        0: rows(
            "entry_count",
            ("segment_duration", ">u4"),
            ("media_time", ">i4"),
            ("media_rate_integer", ">i2"),
            ("media_rate_fraction", ">i2"),
        ),
        1: rows(
            "entry_count",
            ("segment_duration", ">u8"),
            ("media_time", ">i8"),
            ("media_rate_integer", ">i2"),
            ("media_rate_fraction", ">i2"),
        ),
    },
)
