"""Draws a page of one canvas: python canvas_child.py PAGE FRAMES FILE read|pictured."""

import sys
from fractions import Fraction
from pathlib import Path

from fragdex.rendering.browser.model import Limits, PageView
from fragdex.rendering.site import NOTHING, Page
from fragdex.rendering.slice import Slicer

if __name__ == "__main__":
    page, frames, file, way = sys.argv[1:]
    slicer = Slicer(
        Page(Path(page).read_text("utf-8")), outside=NOTHING, limits=Limits(), sandbox=False,
        missing=(), reads_canvas=way == "read",
    )  # fmt: skip
    try:
        slicer.draw(PageView(1280, 720, Fraction(30)), range(int(frames)), Path(file))
    finally:
        slicer.close()
