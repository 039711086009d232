"""Pages that show numbers, pictures that do, and reading both again."""

import io
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from PIL import Image

PAGES = Path(__file__).parents[3] / "benchmarks" / "render" / "pages"
ROWS = (0, 40, 80, 120)
SIZE = (320, 180)


def numbers_page(fps):
    """The page whose rows are: frame by the page's clock, that clock, rAF's clock, calls."""
    rate = f"<script>window.rate = {fps.numerator} / {fps.denominator}</script>"
    return (PAGES / "numbers.html").read_text().replace("<canvas", rate + "<canvas", 1)


def plane(frame, number=0):
    """A plane of a picture: height × width uint8, without what pads the rows."""
    part = frame.planes[number]
    rows = np.frombuffer(part, np.uint8).reshape(part.height, part.line_size)
    return rows[:, : part.width]


def read_rows(picture):
    """The numbers in a picture of 32 squares a row."""
    numbers = []
    for top in ROWS:
        bits = picture[top + 10, 5:320:10] > 128
        numbers.append(int("".join("1" if bit else "0" for bit in bits), 2))
    return numbers


def decoded(path):
    """(time, luma) of every frame of a finished file, in order of presentation."""
    with av.open(str(path)) as film:
        for frame in film.decode(video=0):
            yield frame.pts * Fraction(frame.time_base), plane(frame)


def plain_png(colour, size=(64, 64)):
    """A picture of one colour."""
    out = io.BytesIO()
    Image.new("RGBA" if len(colour) == 4 else "RGB", size, colour).save(out, "PNG")
    return out.getvalue()


def png(*numbers):
    """A picture of numbers, as the browser gives them."""
    pixels = np.full((SIZE[1], SIZE[0], 3), 128, np.uint8)
    for top, number in zip(ROWS, numbers, strict=False):
        for bit in range(32):
            white = number >> (31 - bit) & 1
            pixels[top : top + 20, bit * 10 : bit * 10 + 10] = 255 * white
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG", compress_level=1)
    return out.getvalue()
