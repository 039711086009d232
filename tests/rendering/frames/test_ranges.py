"""A range of a film: its pictures and its sound are those of the whole."""

import base64
from fractions import Fraction

import av
import numpy as np
import pytest

from fragdex.errors import PageFailed
from fragdex.rendering.outputs import Film
from fragdex.rendering.plan import ONE_BROWSER
from fragdex.rendering.render import render
from fragdex.rendering.site import Page
from fragdex.rendering.spec import RenderSpec
from rendering.frames.numbers import decoded, numbers_page, read_rows
from rendering.frames.test_seams import Stateful
from rendering.page_media.films import RATE, wav

pytestmark = pytest.mark.usefixtures("chromium")

NTSC = Fraction(30000, 1001)
EXACT = Film("mkv", codec="ffv1", pixel_format="yuv420p", audio="pcm")


def noisy(fps):
    """The numbers of frames, and noise from the first sample on."""
    noise = np.random.default_rng(7).uniform(-0.7, 0.7, 3 * RATE)
    url = "data:audio/wav;base64," + base64.b64encode(wav(noise)).decode()
    return Page(numbers_page(fps) + f"<audio autoplay src='{url}'></audio>")


def heard(path):
    """The samples of a film, of one side."""
    with av.open(str(path)) as film:
        frames = [frame.to_ndarray().reshape(-1, 2) for frame in film.decode(audio=0)]
    return np.concatenate(frames)[:, 0]


def test_pictures_and_samples_of_a_range_are_those_of_the_whole(tmp_path):
    site = noisy(NTSC)
    whole, part = tmp_path / "whole.mkv", tmp_path / "part.mkv"
    render(site, RenderSpec(320, 180, NTSC, 2000, film=EXACT), whole, slices=1)
    wanted = RenderSpec(320, 180, NTSC, 3000, film=EXACT, from_ms=767, to_ms=1535)
    film = render(site, wanted, part, slices=2, jobs=2)
    assert [(one.first, one.frames) for one in film.slices] == [(23, 12), (35, 11)]
    frames = list(decoded(part))
    assert [read_rows(picture)[0] for _, picture in frames] == list(range(23, 46))
    assert frames[0][0] == 0
    first, stop = (round(frame / NTSC * RATE) for frame in (23, 46))
    assert (heard(part) == heard(whole)[first:stop]).all()


def test_a_range_of_a_page_that_needs_all_its_frames_is_drawn_from_the_beginning(tmp_path):
    site = Stateful("gif.html")
    whole, part = tmp_path / "whole.mkv", tmp_path / "part.mkv"
    wanted = RenderSpec(320, 180, Fraction(10), 800, film=EXACT)
    render(site, wanted, whole, slices=1)
    wanted = RenderSpec(320, 180, Fraction(10), film=EXACT, from_ms=500, to_ms=800)
    for slices in (1, 2):
        film = render(site, wanted, part, slices=slices, jobs=2)
        assert [line for line in film.notes.browser if line.startswith(ONE_BROWSER)]
        pictures = [[picture.copy() for _, picture in decoded(path)] for path in (whole, part)]
        assert len(pictures[1]) == 3
        for one, other in zip(pictures[0][5:], pictures[1], strict=True):
            assert (one == other).all()


def test_a_range_behind_the_end_says_how_long_the_film_is(tmp_path):
    page = Page("<body style='animation: go 1s'><style>@keyframes go { to { opacity: 0 } }")
    wanted = RenderSpec(64, 64, from_ms=1000)
    with pytest.raises(PageFailed, match="between 1000 and 1000 ms: the video is 1000 ms long"):
        render(page, wanted, tmp_path / "a.mp4")
