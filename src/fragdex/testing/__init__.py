"""What tests of media pipelines need: small movies with known truth, hostile ones, a range server.

Strategies for hypothesis stand in `box_strategies`, `file_strategies` and `index_strategies`;
they alone need hypothesis (the extra `testing`).
"""

from fragdex.testing.checks import Violation, check_bmff, check_cmaf, check_dash, check_hls
from fragdex.testing.files import made_movie, make_file, movie
from fragdex.testing.range_server import Faults, RangeServer
from fragdex.testing.repeats import DIMENSIONS, repeated, repeated_to
from fragdex.testing.tracks import Made

__all__ = [
    "DIMENSIONS",
    "Faults",
    "Made",
    "RangeServer",
    "Violation",
    "check_bmff",
    "check_cmaf",
    "check_dash",
    "check_hls",
    "made_movie",
    "make_file",
    "movie",
    "repeated",
    "repeated_to",
]


def __dir__() -> list[str]:
    return sorted(__all__)
