"""Test pages, and what is seen on pictures of them."""

import io
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from fragdex.rendering.site import Folder, OpenAsset, Page

PAGES = Path(__file__).parent
MOVING = sorted(path.name for path in (PAGES / "moving").glob("*.html"))
STATEFUL = sorted(path.name for path in (PAGES / "stateful").glob("*.html"))
# Two films of them may differ, even of one browser: what is random, or takes real time.
BY_CHANCE = ("decoder.html", "keys.html", "view-transition.html")


class Moving(Folder):
    """The pages that move a red square by 100 pixels a second, one of them as index.html."""

    def __init__(self, name):
        super().__init__(PAGES / "moving")
        self.name = name

    def open(self, path):
        return super().open(path or self.name)


class Stateful(Folder):
    """The pages that keep something from frame to frame, one of them as index.html."""

    def __init__(self, name):
        super().__init__(PAGES / "stateful")
        self.name = name

    def open(self, path):
        if path == "moving.gif":
            return OpenAsset(io.BytesIO(animation("GIF")), "image/gif")
        return super().open(path or self.name)


@cache
def animation(kind, count=10):
    """A file of pictures of 100 ms, of a square that goes to the right."""
    pictures = []
    for i in range(count):
        pictures.append(Image.new("RGB", (320, 180), "#fff"))
        ImageDraw.Draw(pictures[-1]).rectangle((28 * i, 60, 28 * i + 40, 100), "#f00")
    out = io.BytesIO()
    more = {"save_all": True, "append_images": pictures[1:], "duration": 100} if count > 1 else {}
    pictures[0].save(out, kind, **more)
    return out.getvalue()


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
    return red_square_of(pixels(picture))


def red_square_of(rgb):
    """The same of an array (height, width, 3)."""
    line = rgb[120].astype(int)
    (columns,) = np.nonzero((line[:, 0] > 200) & (line[:, 1] < 60) & (line[:, 2] < 60))
    return (int(columns[0]), int(columns[-1] - columns[0]) + 1) if len(columns) else None
