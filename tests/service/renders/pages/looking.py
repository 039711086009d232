"""Test pages, and what is seen on pictures of them."""

import io
from pathlib import Path

import numpy as np
from PIL import Image

from fragdex.service.renders.site import Folder, Page

PAGES = Path(__file__).parent
MOVING = sorted(path.name for path in (PAGES / "moving").glob("*.html"))


class Moving(Folder):
    """The pages that move a red square by 100 pixels a second, one of them as index.html."""

    def __init__(self, name):
        super().__init__(PAGES / "moving")
        self.name = name

    def read(self, path):
        return super().read(path or self.name)


def numbers_page(fps):
    """A page that writes, as bits: frame number by rAF and by performance.now, rAF's time in
    tenths of a millisecond, Date, how many frames it drew before."""
    html = (PAGES / "numbers.html").read_text("utf-8")
    return Page(
        html.replace("const FPS = 30;", f"const FPS = {fps.numerator} / {fps.denominator};")
    )


def pixels(picture, mode="RGB"):
    with Image.open(io.BytesIO(picture)) as image:
        return np.asarray(image.convert(mode)).astype(int)


def numbers(picture):
    """The rows of numbers_page."""
    grey = pixels(picture, "L")
    return [
        sum(1 << bit for bit in range(32) if grey[8 * row + 4, 8 * bit + 4] < 128)
        for row in range(5)
    ]


def red_square(picture):
    """(left edge, width) of the red square, None where there is none."""
    line = pixels(picture)[120]
    (found,) = np.nonzero((line[:, 0] > 200) & (line[:, 1] < 60) & (line[:, 2] < 60))
    return (int(found[0]), int(found[-1] - found[0]) + 1) if len(found) else None
