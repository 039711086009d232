"""Pages made with published libraries, and by what browsers bring: each frame shows its moment."""

from dataclasses import replace
from fractions import Fraction

import pytest

from fragdex.rendering.plan import ONE_BROWSER
from fragdex.rendering.render import render
from rendering.libraries.lanes import Lanes, need_libraries
from rendering.libraries.moments import (
    CANVASES,
    COMPONENTS,
    OWN,
    TWEENS,
    WANTED,
    even,
    from_half,
    wrong_frames,
)

pytestmark = pytest.mark.usefixtures("chromium")


def film_of(names, path, wanted=WANTED):
    """Draws a page of lanes; the notes of its film."""
    film = render(Lanes(*names), wanted, path, slices=3, jobs=2)
    assert film.notes.console == film.notes.blocked == film.notes.refused == []
    return film


@pytest.mark.parametrize("names", [TWEENS, COMPONENTS, CANVASES, OWN], ids=lambda names: names[0])
def test_every_frame_shows_its_moment_however_many_browsers_draw(names, tmp_path):
    if names is not OWN:
        need_libraries()
    film = film_of(names, tmp_path / "film.mkv")
    assert len(film.slices) == 3
    assert not [line for line in film.notes.browser if line.startswith(ONE_BROWSER)]
    assert wrong_frames(names, tmp_path / "film.mkv") == []


@pytest.mark.parametrize("names", [COMPONENTS, OWN], ids=lambda names: names[0])
def test_a_second_run_gives_the_same_bytes(names, tmp_path):
    if names is not OWN:
        need_libraries()
    for name in ("one.mkv", "two.mkv"):
        film_of(names, tmp_path / name)
    assert (tmp_path / "one.mkv").read_bytes() == (tmp_path / "two.mkv").read_bytes()


def test_a_view_transition_shows_its_moments(tmp_path):
    """One browser draws it."""
    film = film_of(["view-transition"], tmp_path / "film.mkv")
    assert [line for line in film.notes.browser if line.startswith(ONE_BROWSER)]
    assert wrong_frames(["view-transition"], tmp_path / "film.mkv") == []


def test_a_page_that_counts_frames_is_called_as_often_as_it_expects(tmp_path):
    """p5 counts frames, Vue waits for one: both as at 60 frames a second."""
    need_libraries()
    names = ("p5-frames", "vue")
    film_of(names, tmp_path / "film.mkv", replace(WANTED, page_fps=Fraction(60)))
    lefts = {
        "p5-frames": [even],
        "vue": [from_half, lambda t: None if t < 0.45 else from_half(t - 1 / 60)],
    }
    assert wrong_frames(names, tmp_path / "film.mkv", lefts) == []
