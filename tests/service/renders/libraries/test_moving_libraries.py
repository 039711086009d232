"""Pages made with published libraries, and by what browsers bring: each frame shows its moment."""

from dataclasses import replace
from fractions import Fraction

import av
import numpy as np
import pytest

from fragdex.service.renders import seams
from fragdex.service.renders.films import Film
from fragdex.service.renders.plan import Wanted
from fragdex.service.renders.render import render
from service.renders.libraries.lanes import HEIGHT, Lanes, need_libraries

pytestmark = pytest.mark.usefixtures("chromium")

FPS = 10
# 20 frames; slices begin at 7 and 14
WANTED = Wanted(160, 90, Fraction(FPS), 2000, film=Film("mkv", codec="ffv1"))


def even(t):
    return 60 * t


def from_half(t):
    return min(100, max(0, 100 * (t - 0.5)))


def timeline(t):
    """Faster with the third power of time, a pause, and back."""
    return 80 * t**3 if t < 1 else 80 - 80 * min(0.5, max(0, t - 1.3))


def at_once(t):
    """Anime takes time 0 for 12 ms before an animation is made."""
    return 60 * (t + 0.012 * (t > 0))


def entering(t):
    """Vue begins the transition of what it puts in with the second frame."""
    return None if t < 0.45 else from_half(t - 0.1)


# What the left edge does in each lane, of a file that may have several.
LEFT = {
    "gsap": [even],
    "gsap-timeline": [timeline],
    "anime": [at_once],
    "anime-waapi": [even],
    "motion": [even],
    "motion-waapi": [even],
    "motion-value": [even],
    "d3": [even],
    "lottie": [even],
    "react": [from_half, even],
    "vue": [from_half, entering],
    "svelte": [even],
    "three": [even],
    "pixi": [even],
    "p5": [even],
    "waapi": [even],
    "smil": [even],
    "scroll-timeline": [even],
    "wasm": [even],
    "indexeddb": [even],
    "view-transition": [from_half],
}
# What grows from the left.
WIDTH = {"chart": lambda t: 80 * t, "font": lambda t: 54 * t}

TWEENS = ("gsap", "gsap-timeline", "anime", "anime-waapi", "motion", "motion-waapi", "motion-value",
          "d3", "lottie")  # fmt: skip
COMPONENTS = ("react", "vue", "svelte")
CANVASES = ("three", "pixi", "p5", "chart")
OWN = ("waapi", "smil", "scroll-timeline", "wasm", "indexeddb", "font")


def edges(line):
    """Where the red of a line of pixels begins and ends; None where there is none."""
    (red,) = np.nonzero((line[:, 0] > 128) & (line[:, 1] < 128))
    return (int(red[0]), int(red[-1]) + 1) if len(red) else None


def film_of(names, path, wanted=WANTED):
    """Draws a page of lanes; the notes of its film."""
    made = render(Lanes(*names), wanted, path, slices=3, jobs=2)
    assert made.notes.console == made.notes.blocked == made.notes.refused == []
    return made


def check(names, path, lefts=LEFT):
    with av.open(str(path)) as film:
        pictures = [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)]
    assert len(pictures) == 20
    lanes = [(name, lane) for name in names for lane in lefts.get(name, [None])]
    wrong = []
    for number, (name, left) in enumerate(lanes):
        for i, picture in enumerate(pictures):
            found = edges(picture[HEIGHT * number + HEIGHT // 2].astype(int))
            x = left(i / FPS) if left else WIDTH[name](i / FPS)
            wanted = None if x is None else (x, x + HEIGHT) if left else (0, x)
            if wanted is None or found is None:
                right = wanted == found or (found is None and wanted[1] - wanted[0] <= 1)
            else:
                right = np.abs(np.subtract(found, wanted)).max() <= 1
            if not right:
                wrong.append((name, i, wanted, found))
    assert wrong == []


@pytest.mark.parametrize("names", [TWEENS, COMPONENTS, CANVASES, OWN], ids=lambda names: names[0])
def test_every_frame_shows_its_moment_however_many_browsers_draw(names, tmp_path):
    if names is not OWN:
        need_libraries()
    made = film_of(names, tmp_path / "film.mkv")
    assert len(made.slices) == 3
    assert not [line for line in made.notes.browser if line.startswith(seams.ALONE)]
    check(names, tmp_path / "film.mkv")


@pytest.mark.parametrize("names", [COMPONENTS, OWN], ids=lambda names: names[0])
def test_a_second_run_gives_the_same_bytes(names, tmp_path):
    if names is not OWN:
        need_libraries()
    for name in ("one.mkv", "two.mkv"):
        film_of(names, tmp_path / name)
    assert (tmp_path / "one.mkv").read_bytes() == (tmp_path / "two.mkv").read_bytes()


def test_a_view_transition_shows_its_moments(tmp_path):
    """One browser draws it."""
    made = film_of(["view-transition"], tmp_path / "film.mkv")
    assert [line for line in made.notes.browser if line.startswith(seams.ALONE)]
    check(["view-transition"], tmp_path / "film.mkv")


def test_a_page_that_counts_frames_is_called_as_often_as_it_expects(tmp_path):
    """p5 counts frames, Vue waits for one: both as at 60 frames a second."""
    need_libraries()
    names = ("p5-frames", "vue")
    film_of(names, tmp_path / "film.mkv", replace(WANTED, page_fps=Fraction(60)))
    check(
        names,
        tmp_path / "film.mkv",
        {
            "p5-frames": [even],
            "vue": [from_half, lambda t: None if t < 0.45 else from_half(t - 1 / 60)],
        },
    )
