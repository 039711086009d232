"""csgp: the group of each sample, by patterns that repeat (ISO/IEC 14496-12, 8.9.5).

The widths of the two tables are in the lowest six bits of flags: 0 to 3 for 4, 8, 16 or 32 bits.
"""

from collections.abc import Callable

from fragdex.boxes.layout import Fields, fourcc, fullbox, packed, rows, u32, where
from fragdex.errors import MalformedBox


def _width(shift: int) -> Callable[[Fields], int]:
    return lambda fields: 4 << (fields["flags"] >> shift & 3)


def _column(shift: int) -> Callable[[Fields], str]:
    def code(fields: Fields) -> str:
        if _width(shift)(fields) == 4:
            raise MalformedBox("pattern numbers of 4 bits beside wider ones")
        return f">u{_width(shift)(fields) // 8}"

    return code


def _nibbles(fields: Fields) -> bool:
    """Two 4-bit numbers share a byte; one alone would leave the next at half a byte."""
    return _width(4)(fields) == 4 and _width(2)(fields) == 4


def _indices(fields: Fields) -> int:
    return int(fields["patterns"]["pattern_length"].sum(dtype="u8"))


CSGP = fullbox(
    "csgp",
    "Compact Sample to Group",
    "ISO/IEC 14496-12, 8.9.5",
    versions=(0,),
    grouping_type=fourcc,
    grouping_type_parameter=where(u32, flag=0x40),
    pattern_count=u32,
    patterns=where(
        rows("pattern_count", ("pattern_length:4 sample_count:4", ">u1")), when=_nibbles
    ),
    wide_patterns=where(
        rows("pattern_count", ("pattern_length", _column(4)), ("sample_count", _column(2))),
        name="patterns",
        when=lambda fields: not _nibbles(fields),
    ),
    sample_group_description_index=packed(_width(0), _indices),
)
