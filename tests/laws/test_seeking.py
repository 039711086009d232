"""A seek finds what a search over all samples finds, for every time that can be written."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fragdex
from fragdex.errors import InexactIndex, NoSyncSample
from fragdex.seeking.track import FEW_TIMES
from laws import brute
from strategies.files import files

anything = st.one_of(
    st.floats(allow_nan=False),
    st.floats(-10, 100),
    st.integers(-(2**70), 2**70),
    st.fractions(-5, 1000),
    st.decimals(allow_nan=False, allow_infinity=False, places=9, min_value=-9, max_value=9999),
)


@st.composite
def questions(draw):
    """A made file, its index, one of its tracks, what is true of it, and times to seek to."""
    film = draw(files())
    index = fragdex.index(film.data, exact=True)
    assume(not brute.restarts(index))
    known = [
        (track, true)
        for period, true in zip(index.periods, film.periods, strict=True)
        for track in period.tracks
        if track.timescale
    ]
    assume(known)
    track, period = draw(st.sampled_from(known))
    true = period.samples.get(track.id, [])
    times = draw(st.lists(anything, max_size=4))
    # Where the answer changes: at every sample, just before it, just after it.
    for sample in draw(st.lists(st.sampled_from(true), max_size=4)) if true else ():
        for ticks in (sample.cts, sample.cts + sample.duration):
            exact = (ticks + track.shift) / track.timescale
            times += [exact, exact - Fraction(1, 10**12), exact + Fraction(1, 10**12)]
            times += [float(exact), math.nextafter(float(exact), -math.inf)]
    return track, true, times


def edges(true):
    """Ends of the track that may count: with and without what an empty fragment says."""
    return max((s.cts + s.duration for s in true), default=None)


@given(questions())
def test_seek_equals_a_search_over_all_samples(question):
    track, true, times = question
    for time in times:
        if isinstance(time, float) and math.isinf(time):
            exact = Fraction(2**80) if time > 0 else -Fraction(2**80)
        else:
            exact = Fraction(time)
        expected = brute.seek(true, track.timescale, track.shift, exact)
        if expected is None:
            with pytest.raises(NoSyncSample):
                track.seek(time)
            continue
        hit = track.seek(time)
        cts, clamped = expected
        assert hit.cts == cts
        assert hit.clamped == clamped
        sample = true[hit.sample]
        assert sample.sync
        assert (sample.cts, sample.dts) == (hit.cts, hit.dts)
        assert hit.time.fraction == (cts + track.shift) / track.timescale
        rows = track.fragments
        first, count = rows.sample_start[hit.fragment], rows.sample_count[hit.fragment]
        assert first <= hit.sample < first + count
        assert hit.range.start == rows.offset[hit.fragment]
        assert hit.range.size == rows.size[hit.fragment]
        if sample.size:  # one of no bytes lies nowhere
            assert hit.range.start <= sample.offset
            assert sample.offset + sample.size <= hit.range.stop


@given(questions())
def test_seek_many_equals_seek(question):
    track, true, times = question
    seconds = [float(time) for time in times if abs(time) < 10**300]
    assume(any(sample.sync for sample in true))
    many = track.seek_many(np.array(seconds))
    hits = [track.seek(time) for time in seconds]
    assert list(many) == hits
    assert [many[n] for n in range(-len(hits), 0)] == hits
    assert list(many[1:]) == list(many[np.arange(len(many)) > 0]) == hits[1:]
    assert many.times.tolist() == [hit.time.seconds for hit in hits]
    assert many.ranges == tuple(hit.range for hit in hits)
    for count in (1, 2, FEW_TIMES):
        assert list(track.seek_many(seconds[:count])) == hits[:count]


@given(questions())
def test_no_time_is_no_number(question):
    track, _, _ = question
    for nan in (math.nan, np.float64("nan"), Decimal("nan")):
        with pytest.raises(ValueError, match="not a number"):
            track.seek(nan)
    with pytest.raises(ValueError, match="not a number"):
        track.seek_many([0.0, math.nan])


@given(files())
def test_without_a_timescale_seconds_mean_nothing(film):
    for track in fragdex.index(film.data, exact=True).tracks:
        if not track.timescale:
            with pytest.raises(InexactIndex):
                track.seek(0)


@given(questions())
def test_a_hit_can_be_sought_again(question):
    track, true, times = question
    assume(any(sample.sync for sample in true))
    for time in times:
        hit = track.seek(time)
        again = track.seek(hit.time)
        assert again.cts == hit.cts
        assert again.time == hit.time


@given(questions(), st.integers(0, 3))
def test_ranges_hold_every_sample_to_decode(question, gap):
    track, true, times = question
    assume(any(sample.sync for sample in true))
    for start in times[:6]:
        for stop in times[:6]:
            exact = [Fraction(t) if abs(t) < 10**300 else None for t in (start, stop)]
            if None in exact or exact[1] < exact[0]:
                continue
            span = found_ranges(track, start, stop, gap)
            low, high = (t * track.timescale - track.shift for t in exact)
            from_cts, _ = brute.seek(true, track.timescale, track.shift, exact[0])
            wanted = [n for n, s in enumerate(true) if s.cts < high and s.cts + s.duration > low]
            if not wanted:
                continue
            begin = max(n for n, s in enumerate(true) if s.sync and s.cts == from_cts)
            for sample in true[begin : max(wanted) + 1]:
                if sample.size:
                    assert any(
                        r.start <= sample.offset and sample.offset + sample.size <= r.stop
                        for r in span
                    )


def found_ranges(track, start, stop, gap):
    from fragdex.seeking.plan import span

    return span([track], (), start, stop, gap).media


@given(questions())
def test_a_plan_reads_what_the_seek_needs(question):
    from fragdex.seeking.plan import plan

    track, true, times = question
    assume(any(sample.sync for sample in true))
    for time in times[:8]:
        seek_plan = plan([track], (), time)
        hit = track.seek(time)
        assert seek_plan.hits == (hit,)
        count = seek_plan.samples[track.id]
        needed = true[hit.sample : hit.sample + count]
        assert len(needed) == count >= 1
        for sample in needed:
            if sample.size:
                assert any(
                    r.start <= sample.offset and sample.offset + sample.size <= r.stop
                    for r in seek_plan.reads
                )
