"""Bytes to boxes and back (ISO/IEC 14496-12): every declared box, and the unknown kept."""

from __future__ import annotations

from fragdex.boxes.box import Box, find, find_all
from fragdex.boxes.layout import BoxLayout
from fragdex.boxes.parsing import ESSENTIAL, OPAQUE, build, make_box, parse, parse_box
from fragdex.boxes.tree import layout_of

__all__ = [
    "ESSENTIAL",
    "OPAQUE",
    "Box",
    "BoxLayout",
    "build",
    "find",
    "find_all",
    "layout_of",
    "make_box",
    "parse",
    "parse_box",
]


def __dir__() -> list[str]:
    return sorted(__all__)
