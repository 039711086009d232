"""How many processes make a film: as many as there is work for, and always the same film."""

import itertools
import threading
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.rendering.render import RenderSpec, SliceScheduler, render
from fragdex.rendering.site import Page

THIRDS = [range(100), range(100, 200), range(200, 300)]


def scheduler(slices=THIRDS, *, at_once=False):
    """A scheduler on a clock that is set by hand."""
    now = [0.0]
    return SliceScheduler(slices, at_once=at_once, clock=lambda: now[0]), now


def may(of):
    return [of.may_begin(number) for number in range(3)]


def test_who_says_how_many_gets_them_at_once():
    assert may(scheduler(at_once=True)[0]) == [True, True, True]


def test_a_fast_page_needs_one_process():
    one, now = scheduler()
    for step in range(1, 11):
        assert may(one) == [True, False, False]
        one.report(THIRDS[0], 10 * step)
        now[0] += 0.06
    one.free()
    assert may(one) == [True, True, False]
    one.begin(1)
    assert may(one) == [True, True, False]
    one.free()
    one.begin(2)


def test_slices_that_are_far_off_get_processes_of_their_own():
    one, now = scheduler()
    one.report(THIRDS[0], 1)
    now[0] = 1
    one.report(THIRDS[0], 81)  # it is at 100 soon, and at 200 in 1.5 s
    assert may(one) == [True, False, False]
    now[0] = 2
    one.report(THIRDS[0], 91)  # a page that begins to move
    assert may(one) == [True, False, True]


def test_time_until_the_first_frame_is_not_that_of_a_frame():
    """The browser starts, and what is before a slice is replayed."""
    one, now = scheduler()
    for _ in range(5):
        one.report(THIRDS[0], 0)
        now[0] += 0.1
    one.report(THIRDS[0], 1)
    now[0] += 0.1
    one.report(THIRDS[0], 90)
    assert may(one) == [True, False, False]


@given(
    count=st.integers(1, 6),
    seconds=st.lists(st.floats(0.001, 3), min_size=1, max_size=8),
    at_once=st.booleans(),
)
def test_every_slice_is_begun_whatever_the_pace(count, seconds, at_once):
    slices = [range(start, start + 10) for start in range(0, 10 * count, 10)]
    one, now = scheduler(slices, at_once=at_once)
    steps = itertools.cycle(seconds)
    begun = []

    def make(number):
        one.begin(number)
        begun.append(number)
        for done in range(11):
            now[0] += next(steps)
            one.report(slices[number], done)
        one.free()

    threads = [threading.Thread(target=make, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(begun) == list(range(count))


def test_where_starting_takes_long_there_has_to_be_more_to_do():
    one, now = scheduler()
    now[0] = 2
    one.report(THIRDS[0], 1)
    now[0] = 3
    one.report(THIRDS[0], 51)  # at 100 after another second, at 200 after three: a start took two
    assert may(one) == [True, False, False]


def test_nobody_waits_for_what_has_ended():
    one, _ = scheduler()
    waiting = threading.Thread(target=one.begin, args=(2,))
    waiting.start()
    one.end()
    waiting.join(timeout=60)
    assert not waiting.is_alive()


STILL = "<body style='background:#fff'><p style='font:40px sans-serif'>nothing moves"
BUSY = (
    STILL
    + """<script>
    requestAnimationFrame(function draw() {
      let sum = 0;
      for (let i = 0; i < 2e6; i++) sum += Math.sin(i);
      document.querySelector("p").style.marginLeft = (performance.now() % 50) + sum % 1 + "px";
      requestAnimationFrame(draw);
    });</script>"""
)


@pytest.mark.usefixtures("chromium")
@pytest.mark.parametrize(
    ("page", "worth", "processes"), [(STILL, 5, 1), (BUSY, 0.2, 2)], ids=["still", "busy"]
)
def test_the_film_is_the_same_however_many_make_it(tmp_path, page, worth, processes, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    # wide of what these pages need, on slow machines too
    monkeypatch.setattr("fragdex.rendering.render.WORTH_SECONDS", worth)
    monkeypatch.setattr("fragdex.rendering.render._STARTS", 0)
    files = {}
    for jobs in (None, 1, 2):
        out = tmp_path / f"{jobs}.mp4"
        spec = RenderSpec(320, 180, Fraction(30), 2000)
        film = render(Page(page), spec, out, jobs=jobs, slices=2)
        files[jobs] = out.read_bytes()
        assert len(film.slices) == 2
        # whoever goes on starts no browser
        started = sum(one.seconds["start"] > 0 for one in film.slices)
        assert started == (jobs or processes)
    assert files[None] == files[1] == files[2]
