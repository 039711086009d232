"""PNGs of the browser are decoded and converted as FFmpeg does it, to the last bit, or by it."""

import io
import struct
import sys
import zlib

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from fragdex.indexing.native import compiled
from fragdex.rendering import pictures
from fragdex.rendering.browser.canvas import CanvasPicture
from fragdex.rendering.browser.model import PageView
from fragdex.rendering.pictures import Pictures, picture_of, pixels_of, shows_canvas
from fragdex.rendering.png import PNGReader

needs_c = pytest.mark.skipif(compiled is None, reason="the C extension was not compiled")


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def filtered(row, above, kind, pixel):
    """A row of a PNG (ISO/IEC 15948, 9.2), by its definition."""
    out = bytearray([kind])
    for i, value in enumerate(row):
        left = row[i - pixel] if i >= pixel else 0
        corner = above[i - pixel] if i >= pixel else 0
        up = above[i]
        nearest = min((left, up, corner), key=lambda one: abs(left + up - corner - one))
        out.append(value - (0, left, up, (left + up) // 2, nearest)[kind] & 0xFF)
    return out


@st.composite
def pngs(draw):
    """Pixels, and a PNG of them: any filters, pieces and chunks between."""
    width, height = draw(st.integers(1, 70)), draw(st.integers(1, 5))
    pixel = draw(st.sampled_from([3, 4]))
    size = width * pixel
    data = draw(st.binary(min_size=height * size, max_size=height * size))
    rows = [data[at : at + size] for at in range(0, len(data), size)]
    kinds = draw(st.lists(st.integers(0, 4), min_size=height, max_size=height))
    lines = b"".join(map(filtered, rows, [bytes(size), *rows], kinds, [pixel] * height))
    packed = zlib.compress(lines, draw(st.integers(0, 9)))
    cut = draw(st.integers(0, len(packed)))
    header = struct.pack(">IIBBBBB", width, height, 8, {3: 2, 4: 6}[pixel], 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"pHYs", bytes(9))
    png += chunk(b"IDAT", packed[:cut]) + chunk(b"IDAT", packed[cut:]) + chunk(b"IEND", b"")
    return np.frombuffer(data, np.uint8).reshape(height, width, pixel), png


@needs_c
@given(pngs())
def test_pixels_are_those_that_were_stored(drawn):
    pixels, png = drawn
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(png))), pixels)
    picture = PNGReader(pixels.shape[1], pixels.shape[0]).decoded(png)
    assert np.array_equal(pixels_of(picture), pixels)


@given(pngs(), st.data())
def test_a_damaged_picture_is_left_to_ffmpeg_or_whole(drawn, data):
    pixels, png = drawn
    damaged = bytearray(png[: data.draw(st.integers(0, len(png)))])
    for _ in range(data.draw(st.integers(0, 3))):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    picture = PNGReader(pixels.shape[1], pixels.shape[0]).decoded(bytes(damaged))
    assert picture is None or pixels_of(picture).shape[:2] == pixels.shape[:2]


@pytest.mark.parametrize("mode", ["L", "P", "1", "LA", "I;16"])
def test_other_kinds_of_png_are_left_to_ffmpeg(mode):
    out = io.BytesIO()
    Image.new(mode, (16, 16)).save(out, "PNG")
    assert PNGReader(16, 16).decoded(out.getvalue()) is None


def test_a_colour_that_is_clear_is_left_to_ffmpeg():
    out = io.BytesIO()
    Image.new("RGB", (16, 16)).save(out, "PNG", transparency=(0, 0, 0))
    assert PNGReader(16, 16).decoded(out.getvalue()) is None


@given(st.integers(8, 60), st.integers(8, 40), st.integers(0, 2**32 - 1))
def test_colours_are_those_of_libswscale(width, height, seed):
    width, height = 2 * width, 2 * height
    exact = pictures._is_exact(width)
    draws = np.random.default_rng(seed)
    # plain areas and edges as well as noise
    levels = draws.integers(2, 257)
    shape = (height, width, 3)
    pixels = (draws.integers(0, levels, shape) * 255 // (levels - 1)).astype(np.uint8)
    picture = picture_of(pixels)
    theirs = pictures._in_bt709(av.video.reformatter.VideoReformatter(), picture, "yuv420p")
    ours = pictures._of_rgb(picture) if exact else theirs
    assert np.array_equal(ours.to_ndarray(), theirs.to_ndarray())
    view = PageView(width, height)
    for order, colours in (("rgba", pixels), ("bgra", pixels[..., ::-1])):
        data = np.dstack([colours, draws.integers(0, 256, (height, width, 1), np.uint8)]).tobytes()
        canvas = CanvasPicture(width, height, order, data)
        assert shows_canvas(view, canvas, canvas)
        assert np.array_equal(Pictures(view).picture(canvas).to_ndarray(), theirs.to_ndarray())
    assert (ours.colorspace, ours.color_range) == (theirs.colorspace, theirs.color_range)


@pytest.mark.parametrize("missing", ["deflate", "fragdex._native"])
def test_pictures_are_the_same_without_either(monkeypatch, missing):
    noise = np.random.default_rng(1).integers(0, 256, (36, 64, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(noise).save(out, "PNG")
    want = Pictures(PageView(64, 36)).picture(out.getvalue()).to_ndarray()
    if missing == "deflate":
        monkeypatch.setitem(sys.modules, "deflate", None)
    else:
        monkeypatch.setattr("fragdex.indexing.native.compiled", None)
    assert PNGReader(64, 36).decoded(out.getvalue()) is None
    assert np.array_equal(Pictures(PageView(64, 36)).picture(out.getvalue()).to_ndarray(), want)
