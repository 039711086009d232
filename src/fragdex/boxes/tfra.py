"""tfra: times and places of a track's sync samples (ISO/IEC 14496-12, 8.8.10).

The last three columns are 1 to 4 bytes wide, as the length_size fields say.
"""

from collections.abc import Callable

from fragdex.boxes.layout import Fields, bits, fullbox, rows, u32


def _column(name: str) -> Callable[[Fields], str]:
    return lambda fields: f">u{fields[name] + 1}" if fields[name] != 2 else "u3"


_NUMBERS = (
    ("traf_number", _column("length_size_of_traf_num")),
    ("trun_number", _column("length_size_of_trun_num")),
    ("sample_number", _column("length_size_of_sample_num")),
)

TFRA = fullbox(
    "tfra",
    "Track Fragment Random Access",
    "ISO/IEC 14496-12, 8.8.10",
    track_ID=u32,
    lengths=bits(
        4,
        reserved=26,
        length_size_of_traf_num=2,
        length_size_of_trun_num=2,
        length_size_of_sample_num=2,
    ),
    number_of_entry=u32,
    entries={
        0: rows("number_of_entry", ("time", ">u4"), ("moof_offset", ">u4"), *_NUMBERS),
        1: rows("number_of_entry", ("time", ">u8"), ("moof_offset", ">u8"), *_NUMBERS),
    },
)
