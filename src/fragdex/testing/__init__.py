"""Makers of what a reader of media meets, for tests: servers with faults, files, boxes.

Shipped, so that users test their own pipelines with it.
"""

from fragdex.testing.range_answers import Faults, Request
from fragdex.testing.range_server import RangeServer

__all__ = ["Faults", "RangeServer", "Request"]
