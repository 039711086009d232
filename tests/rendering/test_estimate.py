"""Sizes of contact sheets, and how many frames an estimate draws."""

from hypothesis import given
from hypothesis import strategies as st

from fragdex.rendering import estimate
from fragdex.rendering.browser.model import PageView

sides = st.integers(2, 8000).map(lambda side: side * 2)


@given(st.integers(1, 20), st.integers(1, 20), sides, sides)
def test_a_sheet_is_bounded_and_makes_no_frame_larger(columns, rows, width, height):
    view = PageView(width=width, height=height)
    wide, high = estimate._tile(view, columns, rows)
    assert wide <= max(view.frame[0], estimate._LEAST)
    assert high <= max(view.frame[1], estimate._LEAST)
    assert wide == estimate._LEAST or columns * wide <= estimate._WIDTH
    bounded = min(wide, high) > estimate._LEAST
    assert not bounded or columns * rows * wide * high <= estimate._PIXELS * 1.2


@given(st.floats(0, 10), st.integers(0, 1000), st.integers(1, 12))
def test_more_frames_are_whole_groups_or_all(seconds, room, group):
    more = estimate._more(seconds, room, group)
    assert 0 <= more <= room
    assert more == room or more % group == 0
