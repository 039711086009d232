"""Durations of 2^31 and more are corrections backwards, in stts as in trun, tfhd and trex."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fragdex
from fragdex.boxes.fragments import (
    DATA_OFFSET,
    DEFAULT_BASE_IS_MOOF,
    DEFAULT_SAMPLE_DURATION,
    SAMPLE_DURATION,
    SAMPLE_FLAGS,
    SAMPLE_SIZE,
)
from fragdex.errors import BuildError
from fragdex.testing.files import Brand, Chunks, make_file
from fragdex.testing.fragments import Fragment
from fragdex.testing.tracks import NON_SYNC, SYNC, Moov, Run, Sample, Track, Traf
from laws import brute

COLUMNS = DATA_OFFSET | SAMPLE_DURATION | SAMPLE_SIZE | SAMPLE_FLAGS
BACK = 2**32
durations = st.sampled_from(
    [0, 1, 40, 40, 40, 1000, 2**31 - 1, 2**31, BACK - 1, BACK - 1, BACK - 3, BACK - 1000]
)


def meant(duration):
    return duration - BACK if duration >= 2**31 else duration


def pictures(values, every):
    """Samples of these durations, every nth of them a sync sample."""
    flags = [NON_SYNC if n % every else SYNC for n in range(len(values))]
    return tuple(Sample(9, d, flag) for d, flag in zip(values, flags, strict=True))


def holds(film, values, first=0):
    """Times are the sums of what the durations mean; whatever is asked follows from them."""
    index = fragdex.index(film.data, exact=True)
    findings = {f.code: f.count for f in index.findings}
    assert ("negative-duration" in findings) == any(d >= 2**31 for d in values)
    track = index.track(1)
    times = np.cumsum([first, *map(meant, values)])[:-1].tolist()
    assert track.samples.dts.tolist() == track.samples.cts.tolist() == times
    at = 0
    for row in range(len(track.fragments)):
        count = int(track.fragments.sample_count[row])
        mine = range(at, at + count)
        at += count
        assert track.fragments.cts_min[row] == min(times[n] for n in mine)
        ends = [times[n] + max(0, int(track.samples.duration[n])) for n in mine]
        assert track.fragments.cts_end[row] == max(ends)
    assert at == len(values)
    sync = [n for n in range(len(values)) if track.samples.sync[n]]
    assert brute.sync_samples(track.sync_samples) == [(n, times[n], times[n]) for n in sync]
    for time in {*times[:5], times[-1]}:
        hit = track.seek(Fraction(time, track.timescale))
        known = [times[n] for n in sync if times[n] <= time]
        assert times[hit.sample] == (max(known) if known else min(times[n] for n in sync))
    return track


@settings(max_examples=40)
@given(
    st.lists(durations, min_size=1, max_size=12),
    st.integers(1, 4),
    st.sampled_from(["stsz", "constant"]),
)
@example([40, BACK - 1, 40, 40], 1, "stsz")
@example([BACK - 5], 1, "constant")
def test_of_stts(values, every, sizes):
    chunks = (pictures(values, every),)
    track = Track(1, timescale=1000, chunks=chunks, sizes=sizes, stss=every > 1)
    film = make_file(Brand(("isom",)), Chunks(((1, 0),)), Moov((track,), fragmented=False))
    checked_track = holds(film, values)
    # Nothing comes behind the last sample that it could correct.
    assert checked_track.samples.duration.tolist() == [
        *map(meant, values[:-1]),
        max(0, meant(values[-1])),
    ]


@settings(max_examples=40)
@given(
    st.lists(st.lists(durations, min_size=1, max_size=5), min_size=1, max_size=8),
    st.integers(1, 4),
)
@example([[40]] * 3 + [[BACK - 1]] + [[40]] * 3, 1)
def test_of_trun(groups, every):
    parts, values = [], []
    for group in groups:
        run = Run(pictures(group, every), COLUMNS)
        parts.append(Fragment((Traf(1, (run,), tfdt=sum(map(meant, values)) % 2**64),)))
        values += group
    film = make_file(Brand(), Moov((Track(1, timescale=1000),)), *parts)
    holds(film, values)


@pytest.mark.parametrize("where", ["tfhd", "trex"])
@pytest.mark.parametrize("value", [40, 2**31, BACK - 1])
@pytest.mark.parametrize("count", [1, 4])
def test_of_defaults(where, value, count):
    run = Run(pictures([value] * count, 1), DATA_OFFSET | SAMPLE_SIZE)
    tfhd = {"default_sample_duration": value} if where == "tfhd" else {}
    flags = DEFAULT_BASE_IS_MOOF | (DEFAULT_SAMPLE_DURATION if tfhd else 0)
    traf = Traf(1, (run,), flags, tfdt=7, **tfhd)
    track = Track(1, timescale=1000, trex=(0 if tfhd else value, 0, SYNC))
    film = make_file(Brand(), Moov((track,)), Fragment((traf,)))
    holds(film, [value] * count, first=7)


def test_a_clip_is_refused_by_name_and_the_advice_helps():
    values = [40, 40, 40, BACK - 30, 40, 40, 40, 40]
    track = Track(1, timescale=1000, chunks=(pictures(values, 4),))
    moov = Moov((track,), fragmented=False)
    data = make_file(Brand(("isom",)), Chunks(((1, 0),)), moov).data
    index = fragdex.index(data)
    with pytest.raises(BuildError, match=r"fall back .* make a fragmented view first"):
        fragdex.clip(index, source=data)
    view = fragdex.view(index, "fragmented", source=data).read(source=data)
    clip = fragdex.clip(fragdex.index(view), source=view).read(source=view)
    clip_index = fragdex.index(clip, exact=True)
    assert clip_index.track(1).sample_count == len(values)
    assert not clip_index.findings
