"""Sync samples as runs: overlapping runs are written out only where they overlap, and not without
bound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.fragments.table import SyncTable
from fragdex.indexing import native
from fragdex.indexing.native_plain import join_sync_plain
from fragdex.indexing.sync import Expansion, expanded, merged, sync_table
from fragdex.testing.files import Brand, make_file
from fragdex.testing.fragments import Fragment
from fragdex.testing.tracks import Moov, Run, Sample, Track, Traf
from repeats import repeated


@st.composite
def tables(draw: st.DrawFn) -> SyncTable:
    """Runs of neighbouring samples, one a fragment, at any times."""
    rows = draw(
        st.lists(
            st.tuples(st.integers(-20, 60), st.integers(0, 5), st.integers(1, 8)),
            min_size=1,
            max_size=8,
        )
    )
    cts, step, count = np.array(rows, np.int64).T
    return SyncTable(
        cts,
        cts - 3,
        np.where(count > 1, step, 0),
        count,
        np.cumsum(count) - count,
        np.ones_like(cts),
        np.arange(len(cts)),
    )


def each(table: SyncTable, starts: np.ndarray) -> list[tuple[int, ...]]:
    """Every sync sample in the table's order: time, number, decode time, fragment."""
    singles = expanded(table, starts)
    columns = (singles.cts, singles.sample, singles.dts, singles.fragment)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@given(tables())
def test_what_overlaps_is_written_out_and_nothing_else_changes(table: SyncTable) -> None:
    starts = table.sample
    every = sorted(each(table, starts))
    whole = merged([table], starts, expansion=Expansion(1000))
    assert each(whole, starts) == every
    needed = Expansion(int(table.count.sum()) - 1)
    try:
        part = merged([table], starts, expansion=needed)
    except fragdex.errors.LimitExceeded:
        # Nothing but samples beside each other in time was left to be written out.
        last = table.cts + (table.count - 1) * table.step
        alone = np.array(
            [
                ((table.cts > b) | (last < a)).sum() == len(table) - 1
                for a, b in zip(table.cts, last, strict=True)
            ]
        )
        assert not alone.any()
        return
    assert each(part, starts) == every
    last = part.cts + (part.count - 1) * part.step
    assert (last[:-1] <= part.cts[1:]).all()


@given(st.lists(st.integers(2, 9), min_size=1, max_size=8), st.integers(1, 50))
def test_runs_that_continue_each_other_become_one(counts: list[int], step: int) -> None:
    number = np.cumsum(counts) - counts
    table = SyncTable(
        number * step,
        number * step - 3,
        np.full_like(number, step),
        np.array(counts),
        number,
        np.ones_like(number),
        np.arange(len(counts)),
    )
    whole = merged([table], number)
    assert each(whole, number) == each(table, number)
    assert len(whole) == 1


def test_long_runs_that_overlap_a_little_cost_a_little() -> None:
    count = 1 << 22
    cts = np.arange(4) * (count - 10)
    numbers = np.arange(4) * count
    table = SyncTable(
        cts,
        cts,
        np.ones_like(cts),
        np.full(4, count),
        numbers,
        np.ones_like(cts),
        np.arange(4),
    )
    allowed = Expansion(100)
    runs = merged([table], numbers, expansion=allowed)
    assert allowed.left == 100 - 3 * 20
    assert runs.count.sum() == 4 * count
    assert len(runs) < 70


def test_two_fragments_that_claim_samples_of_no_bytes_at_one_time_are_refused() -> None:
    """A file of a kilobyte took three gigabytes."""
    with pytest.raises(fragdex.errors.LimitExceeded) as caught:
        fragdex.index(repeated("overlapping-runs-of-nothing", 2))
    error = caught.value
    assert error.path == "moof/traf/trun"
    assert error.offset is not None
    assert "at most" in str(error)
    assert str(2 * (1 << 23) - 2) in str(error)


def test_fragments_of_sound_that_overlap_by_a_sample_are_indexed() -> None:
    """Defaults alone tell the samples: PCM, a thousand a fragment, of more than is written out."""
    fragments, samples = 300, 1000
    run = Run((Sample(1, 1),) * samples, 0x1)
    parts = [Fragment((Traf(1, (run,), tfdt=n * (samples - 1)),)) for n in range(fragments)]
    track = Track(1, "audio", 1024, trex=(1, 1, 0))
    film = make_file(Brand(), Moov((track,)), *parts)
    index = fragdex.index(film.data)
    times = np.arange(0, fragments * (samples - 1), 777)
    hits = index.track(1).seek_many(times / 1024)
    assert (hits.cts == times).all()
    assert index.track(1).sync_samples.count.sum() == fragments * samples


def test_a_run_over_two_fragments_that_overlaps_another_keeps_both():
    """Samples 3 and 4 are one run, and stand in fragments of their own."""
    columns = {
        "cts": [0, -1], "dts": [0, 0], "step": [0, 1001], "count": [3, 2], "sample": [0, 3],
        "fragment": [0, 0], "sample_start": [0, 4],
    }  # fmt: skip
    table = sync_table(**{name: np.array(column) for name, column in columns.items()})
    assert dict(zip(table.sample, table.fragment, strict=True)) == {3: 0, 0: 0, 1: 0, 2: 0, 4: 1}


STRIDES = st.sampled_from(
    [(0, 0, 0), (5, 5, 1), (5, 5, 1), (5, 5, 3), (10, 10, 2), (5, 6, 1), (-5, 5, 1)]
)


@st.composite
def neighbours(draw: st.DrawFn) -> np.ndarray:
    """Columns of runs and single samples that mostly stand where the one before ends, or nearly."""
    rows, at = [], (0, 0, 0)
    for number in range(draw(st.integers(0, 9))):
        count = draw(st.sampled_from([1, 1, 1, 2, 3]))
        cts, _, sample = draw(STRIDES)
        rows.append(
            (
                at[0],
                at[1],
                cts if count > 1 or draw(st.booleans()) else 0,
                count,
                at[2],
                sample,
                number,
            )
        )
        ahead = draw(STRIDES)
        by = draw(st.sampled_from([1, count, 2**61]))
        at = (at[0] + by * ahead[0], at[1] + by * ahead[1], at[2] + by * ahead[2])
    rows = [[(n + 2**63) % 2**64 - 2**63 for n in row] for row in rows]
    return np.array(rows, np.int64).reshape(-1, 7).T.copy()


@given(neighbours())
def test_runs_are_joined_alike_in_c_and_in_python(rows: np.ndarray) -> None:
    expected = join_sync_plain(rows.copy())
    assert native.join_sync(rows.copy()).tolist() == expected.tolist()


@given(st.lists(st.integers(1, 3), max_size=30))
def test_no_fewer_runs_say_the_same_of_single_samples(gaps: list[int]) -> None:
    """Held against every way to part the samples into stretches that are evenly spaced."""
    cts = np.cumsum([0, *gaps])
    ones = np.ones_like(cts)
    rows = np.array([cts, cts, 0 * cts, ones, np.arange(len(cts)), ones, 0 * cts])
    fewest = [0]
    for stop in range(1, len(cts) + 1):
        starts = [s for s in range(stop) if len({*gaps[s : stop - 1]}) <= 1]
        fewest.append(1 + min(fewest[start] for start in starts))
    joined = native.join_sync(rows.copy())
    assert joined.shape[1] == fewest[-1]
    table = expanded(SyncTable(*joined))
    assert table.cts.tolist() == cts.tolist()
    assert table.sample.tolist() == list(range(len(cts)))
