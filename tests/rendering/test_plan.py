"""Every frame is in one slice, however a render is divided."""

import contextlib
import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.rendering.browser.model import PageView, instant_us
from fragdex.rendering.fields import rate_of
from fragdex.rendering.plan import plan
from fragdex.rendering.spec import RenderSpec, frame_at, frame_count, key_interval

rates = st.sampled_from([Fraction(n) for n in (1, 5, 12, 24, 25, 30, 50, 60, 120)]) | st.builds(
    Fraction, st.sampled_from([24000, 30000, 60000]), st.just(1001)
)


@given(rates, st.integers(1, 3_600_000), st.integers(1, 20_000), st.integers(1, 50))
def test_slices_are_the_frames_each_once(fps, duration_ms, slice_ms, count):
    view = PageView(640, 360, fps)
    frames = range(slice_ms, slice_ms + frame_count(duration_ms, fps))
    for parts in (
        plan(view, frames),
        plan(view, frames, slice_ms=slice_ms),
        plan(view, frames, slices=count, at_once=True, ahead=True),
        plan(view, frames, slices=count),
    ):
        assert (parts.borders[0], parts.borders[-1]) == (frames.start, frames.stop)
        assert parts.frames == frame_count(duration_ms, fps)
        assert list(parts.borders) == sorted(set(parts.borders))
    assert len(parts.slices) == min(count, parts.frames)
    lengths = [len(frames) for frames in parts.slices]
    # nobody waits for one slice that is far longer than the others
    assert max(lengths) <= 1.3 * min(lengths) + 1


@given(rates, st.integers(10_000, 3_600_000), st.integers(2000, 10_000))
def test_borders_are_key_frames_of_the_result(fps, duration_ms, slice_ms):
    frames = range(7, 7 + frame_count(duration_ms, fps))
    parts = plan(PageView(640, 360, fps), frames, slice_ms=slice_ms)
    keys = key_interval(fps)
    if frame_count(slice_ms, fps) >= keys:
        assert all((border - 7) % keys == 0 for border in parts.borders[:-1])
    lengths = [len(frames) for frames in parts.slices]
    assert max(lengths, default=0) <= 1.5 * max(keys, lengths[0]) + 1


@given(rates, st.lists(st.integers(0, 100_000), min_size=2, max_size=5))
def test_ranges_that_follow_each_other_have_every_frame_once(fps, times):
    frames = []
    for start, stop in pairwise(sorted(times)):
        with contextlib.suppress(ValueError):
            frames += RenderSpec(fps=fps, from_ms=start, to_ms=stop).frames(100_000)
    assert frames == sorted(set(frames))
    with contextlib.suppress(ValueError):
        assert frames == [
            *RenderSpec(fps=fps, from_ms=min(times), to_ms=max(times)).frames(100_000)
        ]


@given(rates, st.integers(0, 100_000))
def test_a_range_may_be_written_to_the_next_millisecond(fps, i):
    """Either of the two that are beside the moment of a frame is its own."""
    exact = i / fps * 1000
    for first in (math.floor(exact), math.ceil(exact)):
        assert RenderSpec(fps=fps, from_ms=first).frames(10**9).start == i


@given(rates, st.integers(0, 3_600_000))
def test_the_frame_at_a_time_is_the_one_that_is_seen_then(fps, time_ms):
    i = frame_at(time_ms, fps)
    assert Fraction(i) / fps * 1000 <= time_ms < Fraction(i + 1) / fps * 1000
    assert instant_us(i, fps) <= time_ms * 1000 + 100


@pytest.mark.parametrize(
    ("said", "meant"),
    [(29.97, "30000/1001"), (59.94, "60000/1001"), (23.976, "24000/1001"), (30, "30"),
     ("25", "25"), (12.5, "25/2"), ("24000/1001", "24000/1001")],
)  # fmt: skip
def test_rates_that_are_written_short_are_meant_exactly(said, meant):
    assert rate_of(said) == Fraction(meant)


@pytest.mark.parametrize("said", [0, 0.5, 121, "1e3", "30/0", "-5", "abc", ""])
def test_what_is_no_rate_is_refused(said):
    with pytest.raises(ValueError, match=r"frames a second|a number"):
        rate_of(said)
