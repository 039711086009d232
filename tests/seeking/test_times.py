"""A time is the exact number it is, in whatever form it is given; what is not a time is refused."""

import math
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex import Time
from fragdex.seeking.time_texts import _MOST_TEXT, parse_time
from fragdex.seeking.times import exact_time, floor_ticks, ticks_of_many
from fragdex.testing import movie

SECONDS = Fraction(3, 2)
FORMS = [
    1.5,
    Fraction(3, 2),
    Decimal("1.5"),
    np.float32(1.5),
    np.float64(1.5),
    Time(3, 2),
    timedelta(milliseconds=1500),
    np.timedelta64(1500, "ms"),
    "1.5",
    "1.5s",
    "0:01.5",
    "0:00:01.5",
    " 1.5 ",
]


@pytest.mark.parametrize("time", FORMS, ids=repr)
def test_every_form_of_a_time_is_the_same_time(time):
    track = fragdex.index(movie(fragments=5)).track(1)
    assert exact_time(time) == SECONDS
    assert track.seek(time) == track.seek(SECONDS)
    assert track.seek_many([time, time]).cts.tolist() == [track.seek(SECONDS).cts] * 2


@pytest.mark.parametrize("whole", [2, np.int64(2), np.uint8(2), "2", "2s", timedelta(seconds=2)])
def test_whole_seconds_are_taken_in_every_form(whole):
    assert exact_time(whole) == 2
    assert floor_ticks(whole, 1000, Fraction(-500)) == 2500


@given(st.fractions(-(10**6), 10**6).map(lambda f: Fraction(round(f * 1000), 1000)))
def test_a_clock_and_its_seconds_are_one_time(seconds):
    sign, rest = "-" if seconds < 0 else "", abs(seconds)
    thousandths = int(rest * 1000)
    hours, minutes = thousandths // 3_600_000, thousandths // 60_000 % 60
    tail = f"{thousandths // 1000 % 60:02}.{thousandths % 1000:03}"
    assert parse_time(f"{sign}{hours}:{minutes:02}:{tail}") == seconds
    assert parse_time(f"{sign}{hours * 60 + minutes}:{tail}") == seconds
    assert parse_time(f"{sign}{thousandths // 1000}.{thousandths % 1000:03}s") == seconds


@given(st.text(alphabet="0123456789:.-s eE+infa٣", max_size=60))
def test_any_text_is_a_time_or_a_value_error_of_one_sentence(text):
    message = ""
    try:
        time = parse_time(text)
    except ValueError as error:
        time, message = None, str(error)
    assert isinstance(time, Fraction) or (" is not a time: " in message and len(message) < 200)


@pytest.mark.parametrize(
    "text",
    [
        *("", "s", "1:99", "1:60", "1:60:00", "1:2:3:4", "1:", ":1", "1e3", "nan", "inf", "--5"),
        *("+5", "1 h", "90m", "1,5", "٣", "1:30s", "1.5:00", "0x10", "9" * 5000),
    ],
)
def test_what_is_no_time_is_refused_in_one_sentence(text):
    with pytest.raises(ValueError, match="is not a time: "):
        parse_time(text)


@pytest.mark.parametrize("wrong", [None, b"90", [90], {}, 1j, np.array([1.0])], ids=repr)
def test_what_cannot_be_a_time_is_a_type_error_that_says_what_is_one(wrong):
    index = fragdex.index(movie())
    for call in (index.track(1).seek, index.plan, lambda time: index.span(0, time)):
        with pytest.raises(TypeError, match=r"a time is a number of seconds.* not"):
            call(wrong)


@pytest.mark.parametrize("nothing", [math.nan, Decimal("nan"), np.timedelta64("NaT")], ids=repr)
def test_nan_is_refused(nothing):
    with pytest.raises(ValueError, match="is not a"):
        exact_time(nothing)


def test_many_times_may_be_of_any_form():
    expected = [1500, 90_000, 0]
    for times in (
        [Fraction(3, 2), "1:30", 0],
        (time for time in (1.5, 90, 0)),
        np.array([1500, 90_000, 0], "m8[ms]"),
        np.array([[1.5], [90], [0]]),
        np.array([[1500], [90_000], [0]], "m8[ms]"),
        np.array(["1.5", "1:30", "0s"]),
        [timedelta(seconds=1.5), timedelta(minutes=1.5), timedelta()],
    ):
        assert ticks_of_many(times, 1000, Fraction(0)).tolist() == expected
    assert ticks_of_many([], 1000, Fraction(0)).tolist() == []
    assert ticks_of_many("1.5", 1000, Fraction(0)).tolist() == [1500]


@pytest.mark.parametrize("timescale", [1000, 1 << 60])
def test_no_times_are_no_ticks(timescale):
    ticks = ticks_of_many([], timescale, Fraction(0))
    assert (ticks.dtype, ticks.shape) == (np.int64, (0,))


def test_texts_beside_numbers_leave_the_numbers_as_they_are():
    """The float 0.3 is a little less than three tenths."""
    assert ticks_of_many([0.3, "0.3"], 10, Fraction(0)).tolist() == [2, 3]


def test_a_text_may_have_so_many_characters_and_no_more():
    assert parse_time("1".rjust(_MOST_TEXT, "0")) == 1
    with pytest.raises(ValueError, match="is not a time"):
        parse_time("1".rjust(_MOST_TEXT + 1, "0"))


def test_a_text_falls_on_the_tick_that_it_names():
    # The float 0.3 is a little less than 3/10.
    assert floor_ticks("0.3", 10, Fraction(0)) == 3
    assert floor_ticks(0.3, 10, Fraction(0)) == 2


@pytest.mark.parametrize("infinite", [math.inf, Decimal("inf"), np.float32("inf")], ids=repr)
def test_an_infinite_time_is_at_the_edge_of_64_bits(infinite):
    for shift in (Fraction(0), Fraction(1, 3)):
        assert floor_ticks(infinite, 1000, shift) == 2**63
        assert floor_ticks(-infinite, 1000, shift) == -(2**63)
        many = ticks_of_many([infinite, -infinite], 1000, shift)
        assert many.tolist() == [2**63 - 1, -(2**63)]


def test_a_span_says_that_it_is_clamped():
    index = fragdex.index(movie(fragments=10))
    track = index.track(1)
    start, end = track.start, track.stop
    assert not index.span(start, end).clamped
    assert not index.span(start, math.inf).clamped
    assert index.span(5000, 6000).clamped
    assert index.span(end, end).clamped
    assert index.span(start.fraction - Fraction(1, 10**12), end).clamped
    assert index.span(start, end.fraction + Fraction(1, 10**12)).clamped
    assert index.span(5000, 6000).media  # the nearest


def test_tracks_may_be_an_iterator():
    index = fragdex.index(movie())
    assert index.span(0, 1, tracks=iter([1])) == index.span(0, 1, tracks=[1])
    assert index.span(0, 1, tracks=[1]).init


TIMES = st.builds(
    Time,
    st.integers(-(10**9), 10**9) | st.fractions(-1000, 1000, max_denominator=1000),
    st.sampled_from([1, 10, 1000, 30000, 90000]),
)
NUMBERS = (
    st.integers(-1000, 1000)
    | st.floats(-1000, 1000)
    | st.fractions(-1000, 1000, max_denominator=1000)
    | st.decimals(-1000, 1000, places=3)
    | TIMES
)


@given(TIMES, NUMBERS)
def test_times_are_reckoned_with_as_exact_numbers(time, other):
    number = exact_time(other)
    results = (time + other, other + time, time - other, other - time)
    exact = time.fraction
    assert results == (exact + number, exact + number, exact - number, number - exact)
    assert {type(one) for one in results} == {Time}
    assert (time < other, time >= other, time == other) == (
        exact < number, exact >= number, exact == number,
    )  # fmt: skip
    assert time == number or hash(time) == hash(exact)
    assert (-time, abs(time)) == (-exact, abs(exact))
    if isinstance(other, Time):
        assert not number or time / other == exact / number
    else:
        assert (time * other, other * time) == (exact * number,) * 2
        assert not number or time / other == exact / number


@given(TIMES)
def test_a_time_is_written_as_a_clock_that_is_read_back(time):
    nearest = Fraction(round(time.fraction * 1000), 1000)
    assert Time.parse(str(time)) == Time.parse(f"{time}") == nearest
    assert f"{time:.3f}" == f"{float(time):.3f}"


def test_a_time_and_what_is_no_number_cannot_be_added_or_compared():
    time = Time(3, 2)
    assert time + timedelta(seconds=1) == 2.5
    assert (time < math.inf, time > math.inf) == (True, False)
    assert time != "1.5"
    for wrong in ("1", None, [1], np.array([1.0])[:0].tolist()):
        with pytest.raises(TypeError):
            time + wrong
        with pytest.raises(TypeError):
            _ = time < wrong
    with pytest.raises(TypeError):
        time * time
