"""Pages made with published libraries, and by what browsers bring: each frame shows its moment."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fragdex.rendering.browser.model import PageView
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.plan import ONE_BROWSER
from fragdex.rendering.render import render
from rendering.libraries.lanes import Lanes, need_libraries
from rendering.libraries.moments import (
    AFTER,
    BATCHES,
    even,
    from_half,
    pictures,
    wanted,
    wrong_frames,
)
from rendering.pages.looking import pixels

pytestmark = pytest.mark.usefixtures("chromium")


def film_of(names, path, slices=3, **changes):
    """Draws a page of lanes; the notes of its film."""
    spec = replace(wanted(names), **changes)
    film = render(Lanes(*names), spec, path, slices=slices, jobs=min(slices, 2))
    assert film.notes.console == film.notes.blocked == film.notes.refused == []
    assert film.notes.late == []
    return film


@pytest.mark.parametrize("kind", BATCHES)
def test_every_frame_shows_its_moment_however_many_browsers_draw(kind, tmp_path):
    if kind != "own":
        need_libraries()
    names, path = BATCHES[kind], tmp_path / "film.mkv"
    film_of(names, path, slices=1)
    whole = pictures(path)
    assert wrong_frames(names, whole) == []
    film = film_of(names, path)
    assert len(film.slices) == 3
    assert not [line for line in film.notes.browser if line.startswith(ONE_BROWSER)]
    assert np.array_equal(pictures(path), whole)


def test_what_browsers_bring_moves_by_a_clock_of_ours_too():
    names = BATCHES["own"]
    spec = wanted(names)
    view = PageView(spec.width, spec.height, spec.fps)
    with Stage(Lanes(*names), view, begin_frames=False) as stage:
        shown = [pixels(stage.frame(i)) for i in range(20)]
        assert stage.notes.console == []
    assert wrong_frames(names, shown) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", BATCHES)
def test_each_page_alone_is_the_same_twice_and_in_slices(kind, tmp_path, request):
    if not request.config.option.full_product:
        pytest.skip("all of a kind are drawn on one page; ./dev test --all draws each alone")
    need_libraries()
    wrong, paths = [], [tmp_path / name for name in ("one.mkv", "two.mkv", "sliced.mkv")]
    for name in BATCHES[kind]:
        names = [AFTER[name], name] if name in AFTER else [name]
        for path in paths:
            film_of(names, path, 3 if path == paths[2] else 1)
        wrong += wrong_frames(names, pictures(paths[0]))
        if paths[0].read_bytes() != paths[1].read_bytes():
            wrong.append((name, "twice"))
        if not np.array_equal(pictures(paths[0]), pictures(paths[2])):
            wrong.append((name, "in slices"))
    assert wrong == []


def test_a_view_transition_shows_its_moments(tmp_path):
    """One browser draws it."""
    film = film_of(["view-transition"], tmp_path / "film.mkv")
    assert [line for line in film.notes.browser if line.startswith(ONE_BROWSER)]
    assert wrong_frames(["view-transition"], pictures(tmp_path / "film.mkv")) == []


def test_a_page_that_counts_frames_is_called_as_often_as_it_expects(tmp_path):
    """p5 counts frames, Vue waits for one: both as at 60 frames a second."""
    need_libraries()
    names = ("p5-frames", "vue")
    film_of(names, tmp_path / "film.mkv", page_fps=Fraction(60))
    lefts = {
        "p5-frames": [even],
        "vue": [from_half, lambda t: None if t < 0.45 else from_half(t - 1 / 60)],
    }
    assert wrong_frames(names, pictures(tmp_path / "film.mkv"), lefts) == []
