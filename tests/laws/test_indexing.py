"""An index says what is true of the file, however its bytes came."""

import pytest
from hypothesis import assume, event, example, given

import fragdex
from fragdex.boxes.fragments import BASE_DATA_OFFSET, DATA_OFFSET
from fragdex.errors import NotISOBMFF
from fragdex.fragments.table import NULL, FragmentFlags
from fragdex.fragments.track_info import Edit
from fragdex.testing.files import Chunks, make_file
from fragdex.testing.fragments import Fragment
from fragdex.testing.tracks import Moov, Run, Sample, Track, Traf
from laws import brute
from strategies.files import files


def index(film):
    """The exact index of a made file, whose clock does not begin again."""
    made = fragdex.index(film.data, exact=True)
    assume(not brute.restarts(made))
    return made


def known(period):
    """Track ids that a period of the truth names."""
    described = [track.id for track in period.moov.tracks] if period.moov else []
    return {*described, *period.samples}


def cut_in_two(duration, *lasting):
    """A film of pictures that last so long, whose edit begins one tick after the first."""
    chunk = tuple(Sample(size=1, duration=ticks) for ticks in lasting)
    track = Track(1, edits=(Edit(duration, 1),), chunks=(chunk,))
    return make_file(Moov((track,), fragmented=False), Chunks(((1, 0),)))


@given(files())
@example(cut_in_two(0, 2, 2))
@example(cut_in_two(9, 2, 2))
@example(cut_in_two(1, 2, 2))
@example(cut_in_two(9, 1, 0, 2))
def test_samples_are_those_that_were_written(film):
    exact_index = index(film)
    assert len(exact_index.periods) == len(film.periods)
    for period, true in zip(exact_index.periods, film.periods, strict=True):
        assert {track.id for track in period.tracks} == known(true)
        for track in period.tracks:
            assert brute.samples(track.samples) == brute.placed(true.samples.get(track.id, []))
            assert track.timescale == true.timescale(track.id)
            assert track.shift == true.shift(track.id)


@given(files())
def test_fragments_sum_up_their_samples(film):
    for period, true in zip(index(film).periods, film.periods, strict=True):
        for track in period.tracks:
            brute.assert_fragments(track.fragments, true.samples.get(track.id, []))


# A base that leads nowhere, and one sample of no bytes (trex and tfhd are silent on its size).
NOTHING_AT_A_STALE_BASE = make_file(
    Moov((Track(1, timescale=1),)),
    Fragment(
        (Traf(1, (Run((Sample(),), DATA_OFFSET),), flags=BASE_DATA_OFFSET, stale=2**40),),
    ),
)


@given(files())
@example(NOTHING_AT_A_STALE_BASE)
def test_fragments_lie_where_they_were_put(film):
    for period, true in zip(index(film).periods, film.periods, strict=True):
        for track in period.tracks:
            rows = track.fragments
            moofs = rows.rows((rows.flags & FragmentFlags.VIRTUAL) == 0)
            mine = [f for f in true.fragments if track.id in f.samples]
            assert moofs.moof_offset.tolist() == [f.moof for f in mine]
            spans = [f.samples[track.id] for f in mine]
            assert moofs.sample_count.tolist() == [stop - start for start, stop in spans]
            parts = film.parts
            for n, fragment in enumerate(mine):
                start, stop = int(moofs.offset[n]), int(moofs.offset[n] + moofs.size[n])
                assert start <= fragment.start <= fragment.moof < stop
                if moofs.data_start[n] != NULL:
                    assert start <= moofs.data_start[n] <= moofs.data_stop[n] <= stop
                # Where an mdat stands before its moof, the one before it ends with that mdat.
                here, *rest = parts[fragment.part :]
                behind = next((p for p in rest if isinstance(p, Fragment)), None)
                if not here.mdat_first and not (behind and behind.mdat_first):
                    assert (start, stop) == (fragment.start, fragment.stop)


@given(files())
def test_sync_runs_stand_for_the_sync_samples(film):
    for period, true in zip(index(film).periods, film.periods, strict=True):
        for track in period.tracks:
            mine = true.samples.get(track.id, [])
            expected = [(n, s.cts, s.dts) for n, s in enumerate(mine) if s.sync]
            assert brute.sync_samples(track.sync_samples) == expected
            assert (track.sync_samples.cts[1:] >= track.sync_samples.cts[:-1]).all()


@given(files())
def test_samples_of_some_fragments_are_a_slice_of_all(film):
    exact_index = index(film)
    for track in exact_index.tracks:
        true = brute.samples(track.samples)
    # a second index, whose samples were not made yet
    for whole, track in zip(exact_index.tracks, index(film).tracks, strict=True):
        true = brute.samples(whole.samples)
        n = len(track.fragments)
        for start in range(n + 1):
            for stop in range(start, n + 1):
                rows = track.fragments.rows(slice(start, stop))
                first = int(rows.sample_start[0]) if len(rows) else 0
                count = int(rows.sample_count.sum())
                assert brute.samples(track.samples_of(start, stop)) == true[first : first + count]


@given(files())
def test_virtual_fragments_begin_at_sync_samples(film):
    for period, true in zip(index(film).periods, film.periods, strict=True):
        for track in period.tracks:
            rows = track.fragments
            rows = rows.rows((rows.flags & FragmentFlags.VIRTUAL) != 0)
            mine = true.samples.get(track.id, [])[: true.in_moov.get(track.id, 0)]
            assert int(rows.sample_count.sum()) == len(mine)
            all_sync = all(s.sync for s in mine)
            for n in range(len(rows)):
                first, count = int(rows.sample_start[n]), int(rows.sample_count[n])
                assert n == 0 or mine[first].sync
                assert all_sync or not any(s.sync for s in mine[first + 1 : first + count])
                if all_sync and n + 1 < len(rows):
                    assert rows.duration[n] >= track.timescale


@given(files())
def test_whole_files_are_complete(film):
    exact_index = index(film)
    event("findings: " + ", ".join(sorted(f.code for f in exact_index.findings)))
    assert exact_index.complete
    assert not [f for f in exact_index.findings if f.code in ("data-outside", "damaged-fragment")]


@given(files())
def test_init_ranges_hold_the_moov(film):
    moovs = [
        span for span, part in zip(film.spans, film.parts, strict=True) if isinstance(part, Moov)
    ]
    exact_index = index(film)
    for number, period in enumerate(p for p in exact_index.periods if p.init):
        start, stop = moovs[number]
        assert any(r.start <= start and stop <= r.stop for r in period.init)


def test_an_empty_input_is_no_movie():
    with pytest.raises(NotISOBMFF):
        fragdex.index(b"")
    assert Moov(()).data({})[4:8] == b"moov"
