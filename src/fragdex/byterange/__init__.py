"""Byte ranges: the value, its text in HTTP (RFC 9110, section 14), and plans of what to read.

Everything here is a pure function of its arguments. Inside fragdex a range is half-open
(`start <= position < stop`); the inclusive last position of HTTP exists only in text.
"""

from fragdex.byterange.fields import (
    MAX_POSITION_DIGITS,
    MAX_RANGES,
    ContentRange,
    RangeVerdict,
    content_range,
    parse_content_range,
    parse_range,
)
from fragdex.byterange.model import ByteRange
from fragdex.byterange.plan import MAX_PLANNED_READS, coalesce, plan_reads

__all__ = [
    "MAX_PLANNED_READS",
    "MAX_POSITION_DIGITS",
    "MAX_RANGES",
    "ByteRange",
    "ContentRange",
    "RangeVerdict",
    "coalesce",
    "content_range",
    "parse_content_range",
    "parse_range",
    "plan_reads",
]


def __dir__() -> list[str]:
    return sorted(__all__)
