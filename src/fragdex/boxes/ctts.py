"""ctts: composition time minus decode time, run by run (ISO/IEC 14496-12, 8.6.1.3).

In ticks of the media's timescale; unsigned in version 0, signed in version 1.
"""

from fragdex.boxes.layout import fullbox, rows, u32

CTTS = fullbox(
    "ctts",
    "Composition Time to Sample",
    "ISO/IEC 14496-12, 8.6.1.3",
    entry_count=u32,
    entries={
        0: rows("entry_count", ("sample_count", ">u4"), ("sample_offset", ">u4")),
        1: rows("entry_count", ("sample_count", ">u4"), ("sample_offset", ">i4")),
    },
)
