"""Frames of more pixels than the page's window has, or fewer."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.errors import TooLarge
from fragdex.rendering.browser.model import SCALES, Limits, PageView
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.outputs import Still
from fragdex.rendering.site import Page
from fragdex.rendering.spec import RenderSpec
from rendering.pages.looking import pixels

# A quarter and a half of a CSS pixel; a box that moves a CSS pixel a frame.
FINE = """<style>body { margin: 0; background: #fff } div { position: absolute; background: #000 }
.line { left: 0; top: 0; width: 0.5px; height: 40px }
.box { left: 10px; top: 10px; width: 20px; height: 20px; animation: go 1s linear both }
@keyframes go { to { left: 40px } }</style><div class=line></div><div class=box></div>
<script>onresize = () => { throw Error("resized") }</script>"""
TOLD = "[devicePixelRatio, innerWidth, innerHeight, screen.width >= innerWidth]"


@pytest.mark.parametrize("begin_frames", [True, False], ids=["virtual", "injected"])
@pytest.mark.parametrize("scale", [2.0, 1.5, 0.5])
def test_the_page_sees_its_window_and_frames_have_more_pixels(scale, begin_frames):
    view = PageView(320, 180, Fraction(30), scale=scale)
    with Stage(Page(FINE), view, begin_frames=begin_frames) as stage:
        frames = [pixels(stage.frame(i)) for i in (0, 20)]
        assert stage.evaluate(TOLD) == [scale, 320, 180, True]
        assert stage.notes.console == []
    assert frames[0].shape[1::-1] == view.pixels == (320 * scale, 180 * scale)
    row = round(20 * scale)
    lefts = [np.flatnonzero(frame[row, round(8 * scale) :, 0] < 100) for frame in frames]
    assert [dark[0] / scale + 8 for dark in lefts] == [10, 30]
    assert [len(dark) / scale for dark in lefts] == [20, 20]
    # half a pixel of the page, or what comes next to it
    assert (frames[0][row, : round(4 * scale), 0] < 100).sum() == 1


@given(st.integers(2, 2000), st.integers(2, 2000), st.sampled_from(SCALES), st.booleans())
def test_every_side_comes_to_whole_pixels_and_in_a_film_to_even_ones(width, height, scale, still):
    view = RenderSpec(width, height, still=Still() if still else None, scale=scale).view()
    for asked, side, side_pixels in zip(
        (width, height), (view.width, view.height), view.pixels, strict=True
    ):
        assert asked <= side < asked + 8
        assert side_pixels == side * scale
        assert still or side_pixels % 2 == 0


def test_limits_are_of_the_pixels_that_are_drawn():
    Limits().check(PageView(3840, 2160, scale=2.0))
    with pytest.raises(TooLarge, match="7680 pixels wide"):
        Limits().check(PageView(3842, 2160, scale=2.0))
    with pytest.raises(TooLarge, match="1000 pixels"):
        Limits(pixels=1000).check(PageView(20, 20, scale=2.0))
