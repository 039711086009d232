"""Where slices meet: a film is that of one browser, however many drew it, or its record says so."""

import base64
import io
from contextlib import closing
from dataclasses import replace
from fractions import Fraction

import pytest
from PIL import Image

from fragdex.rendering.browser.animated import is_animated
from fragdex.rendering.browser.model import Notes, PageView
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.lint import lint
from fragdex.rendering.messages import SliceMade
from fragdex.rendering.outputs import Still
from fragdex.rendering.plan import ONE_BROWSER, SlicePlan, first_difference
from fragdex.rendering.pool import ChildPool, PageSource
from fragdex.rendering.render import render
from fragdex.rendering.site import Page
from fragdex.rendering.spec import RenderSpec
from rendering.frames.numbers import PAGES, numbers_page
from rendering.pages import looking
from rendering.pages.looking import BY_CHANCE, STATEFUL, Stateful, animation

pytestmark = pytest.mark.usefixtures("chromium")

# What one browser has to draw, and what its record names.
ALONE = {
    "decoder.html": "ImageDecoder",
    "gif.html": "an animated picture",
    "keys.html": "different pictures",
    "view-transition.html": "a view transition",
}
# 60 frames: slices meet before 22 and 42
WANTED = RenderSpec(320, 180, Fraction(30), 2000)


def film_of(site, out, **how):
    """What was told of a film, and its bytes."""
    rendered = render(site, WANTED, out, **how)
    return rendered, out.read_bytes()


def drawn_by_one(rendered):
    return [line for line in rendered.notes.browser if line.startswith(ONE_BROWSER)]


@pytest.mark.parametrize("name", STATEFUL)
def test_a_film_of_three_browsers_is_that_of_one_or_is_drawn_by_one(tmp_path, name):
    site = Stateful(name)
    rendered, film = film_of(site, tmp_path / "three.mp4", slices=3, jobs=3)
    assert len(rendered.slices) == 3
    again, alone = film_of(site, tmp_path / "one.mp4", slices=3, jobs=1)
    assert not drawn_by_one(again)
    if name in ALONE:
        (line,) = drawn_by_one(rendered)
        assert ALONE[name] in line
    else:
        assert not drawn_by_one(rendered)
    if name not in BY_CHANCE:
        assert film == alone


@pytest.mark.parametrize("name", ["numbers", "simple", "heavy", "slides", "beeps", "plain"])
def test_ordinary_pages_are_drawn_by_several_browsers(tmp_path, name):
    page = looking.PAGES / "stateful" if name == "plain" else PAGES
    html = (page / f"{name}.html").read_text()
    if name == "numbers":
        html = numbers_page(Fraction(30))
    rendered, _ = film_of(Page(html), tmp_path / "a.mp4", slices=3, jobs=3)
    assert drawn_by_one(rendered) == []
    # the second and the third came from the beginning, in browsers of their own
    assert all(one.seconds["start"] > 0 for one in rendered.slices)


def test_what_differs_is_drawn_again_by_the_browser_that_went_on(tmp_path):
    """The one that drew the first slice goes on: its browser is the film's."""
    site = Stateful("keys.html")
    rendered, _ = film_of(site, tmp_path / "a.mp4", slices=2, jobs=2)
    (line,) = drawn_by_one(rendered)
    assert f"frame {rendered.slices[1].first}" in line
    assert rendered.slices[0].seconds["start"] > 0 == rendered.slices[1].seconds["start"]
    assert rendered.slices[1].begins_after == rendered.slices[0].ends_with


@pytest.mark.parametrize("name", ["gif.html", "view-transition.html"])
def test_who_skipped_frames_that_are_needed_is_not_waited_for(tmp_path, name):
    """It stops before it has drawn anything; the one that draws from the beginning goes on."""
    rendered, _ = film_of(Stateful(name), tmp_path / "a.mp4", slices=2, jobs=2)
    assert drawn_by_one(rendered)
    assert rendered.slices[0].seconds["start"] > 0 == rendered.slices[1].seconds["start"]


def test_a_still_of_a_page_that_needs_its_frames_is_that_of_the_film(tmp_path):
    site, out = Stateful("gif.html"), tmp_path / "a.png"
    rendered = render(site, replace(WANTED, still=Still("png"), time_ms=800), out)
    assert ALONE["gif.html"] in drawn_by_one(rendered)[0]
    with Stage(site, WANTED.view()) as stage:
        shown = [stage.frame(i) for i in range(25)]
    last = next(picture for picture in reversed(shown) if picture is not None)
    with Image.open(out) as still, Image.open(io.BytesIO(last)) as frame:
        assert still.convert("RGB").tobytes() == frame.convert("RGB").tobytes()


def test_a_picture_that_is_asked_for_as_data_is_looked_at_as_well(tmp_path):
    for count, needed in ((10, True), (1, False)):
        data = base64.b64encode(animation("PNG", count)).decode()
        html = f"<body style='margin:0'><img src='data:image/png;base64,{data}'>"
        rendered, _ = film_of(Page(html), tmp_path / "a.mp4", slices=2, jobs=2)
        assert bool(drawn_by_one(rendered)) is needed


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP"])
def test_pictures_that_move_are_known_by_their_bytes(kind):
    assert is_animated(animation(kind))
    assert is_animated(animation(kind, 2))
    assert not is_animated(animation(kind, 1))
    assert not any(is_animated(animation(kind)[:stop]) for stop in range(16))


def test_each_slice_tells_what_its_browser_saw_before_it(tmp_path):
    """Also one that goes on, or jumps; equal to what the slice before it ended with."""
    page = PageSource("a", Page(numbers_page(Fraction(30))))
    view = PageView(320, 180, Fraction(30))
    with closing(ChildPool()) as pool:
        first = pool.draw(page, RenderSpec(), view, range(10), tmp_path)
        next_one = pool.draw(page, RenderSpec(), view, range(10, 20), tmp_path)
        pool.drop("a")
        replayed = pool.draw(page, RenderSpec(), view, range(10, 20), tmp_path)
        assert pool.alone(page, view, [0, 10, 20]) == 0
        later = pool.draw(page, RenderSpec(), view, range(20, 30), tmp_path)
    assert first.begins_after is None
    assert first.ends_with == next_one.begins_after == replayed.begins_after
    assert next_one.ends_with == replayed.ends_with == later.begins_after
    assert len({first.ends_with, next_one.ends_with, later.ends_with}) == 3
    assert (replayed.frames, later.frames) == (10, 10)


SEEKABLE = """<meta name="fragdex:seekable"><body style="margin:0"><script>
let frames = 0;
requestAnimationFrame(function draw() {
  document.body.style.background = `rgb(${frames += 4}, 0, 0)`;
  requestAnimationFrame(draw);
})</script>"""


def test_a_page_that_says_wrongly_that_it_can_be_jumped_into(tmp_path):
    rendered, film = film_of(Page(SEEKABLE), tmp_path / "three.mp4", slices=3, jobs=3)
    assert drawn_by_one(rendered)
    rendered, alone = film_of(Page(SEEKABLE), tmp_path / "one.mp4", slices=3, jobs=1)
    assert not drawn_by_one(rendered)
    assert film == alone


def test_slices_agree_where_neighbours_saw_the_same():
    def made(first, before, last):
        whole = SliceMade("", first, 10, {}, {}, Notes())
        return replace(whole, begins_after=before, ends_with=last)

    film = [made(0, None, "a"), made(10, "a", "b"), made(20, "b", "c")]
    assert first_difference(film) is None
    assert first_difference(film[:1]) is None
    assert first_difference([film[0], made(10, "x", "b"), film[2]]) == 10
    assert first_difference([*film[:2], made(20, "x", "c")]) == 20
    # what nobody looked at is not known to be right
    assert first_difference([made(0, None, None), made(10, None, "b")]) == 10


def test_a_browser_that_skipped_frames_does_not_go_on_alone(tmp_path):
    page = PageSource("a", Page(numbers_page(Fraction(30))))
    view = PageView(320, 180, Fraction(30))
    borders = SlicePlan(view, (0, 10, 20, 30)).borders
    with closing(ChildPool()) as pool:
        pool.draw(page, RenderSpec(), view, range(10), tmp_path)
        assert pool.alone(page, view, borders) == 10
        pool.draw(page, RenderSpec(), view, range(10, 20), tmp_path)
        assert pool.alone(page, view, borders) == 20
        pool.draw(page, RenderSpec(), view, range(25, 30), tmp_path)
        assert pool.alone(page, view, borders) == 0


def test_a_page_that_one_browser_has_to_draw_can_be_checked():
    report = lint(PageSource("", Stateful("gif.html")), WANTED)
    assert len(report.drawn) == 12
    assert "failed" not in [one.kind for one in report.findings]
