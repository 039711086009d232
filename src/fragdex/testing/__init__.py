"""What tests of media pipelines need: movies with known truth, checks, a range server."""

from fragdex.testing.checks import (
    Violation,
    check_bmff,
    check_cmaf,
    check_dash,
    check_fidx,
    check_fidx_file,
    check_hls,
)
from fragdex.testing.editing import edit
from fragdex.testing.files import made_movie, make_file, movie
from fragdex.testing.range_server import Faults, RangeServer
from fragdex.testing.tracks import Made

__all__ = [
    "Faults",
    "Made",
    "RangeServer",
    "Violation",
    "check_bmff",
    "check_cmaf",
    "check_dash",
    "check_fidx",
    "check_fidx_file",
    "check_hls",
    "edit",
    "made_movie",
    "make_file",
    "movie",
]


def __dir__() -> list[str]:
    return sorted(__all__)
