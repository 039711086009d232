"""stts: durations of samples, run by run (ISO/IEC 14496-12, 8.6.1.2).

In ticks of the media's timescale.
"""

from fragdex.boxes.layout import fullbox, rows, u32

STTS = fullbox(
    "stts",
    "Decoding Time to Sample",
    "ISO/IEC 14496-12, 8.6.1.2",
    entry_count=u32,
    entries=rows("entry_count", ("sample_count", ">u4"), ("sample_delta", ">u4")),
)
