"""Checks of what is packaged, by ISO/IEC 14496-12, HLS, DASH and CMAF, and of binary indexes."""

from fragdex.testing.checks.bmff import check_bmff
from fragdex.testing.checks.cmaf import check_cmaf
from fragdex.testing.checks.dash import check_dash
from fragdex.testing.checks.fidx import check_fidx, check_fidx_file
from fragdex.testing.checks.hls import check_hls
from fragdex.testing.checks.violation import Violation

__all__ = [
    "Violation",
    "check_bmff",
    "check_cmaf",
    "check_dash",
    "check_fidx",
    "check_fidx_file",
    "check_hls",
]
