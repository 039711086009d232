"""The order of windows: each once an epoch, the same everywhere, from any place on."""

from __future__ import annotations

import json
from collections import Counter
from itertools import chain, zip_longest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.data import WindowSampler, WindowStream, window_order
from fragdex.data.window_order import Permutation, Runs


@given(st.integers(0, 3000), st.integers(0, 2**64), st.integers(0, 99))
def test_an_order_has_each_number_once(count, seed, epoch):
    order = Permutation(count, seed, epoch)
    assert sorted(order(np.arange(count)).tolist()) == list(range(count))
    assert (order(np.arange(count)[::-1]) == order(np.arange(count))[::-1]).all()


@pytest.mark.parametrize("count", [2**31 + 11, 10**15, 2**62])
def test_an_order_of_many_is_not_stored(count):
    order = Permutation(count, 7)
    places = np.append(np.arange(1000), count - 1 - np.arange(1000))
    numbers = order(places)
    assert 0 <= numbers.min() < count // 20
    assert count - count // 20 < numbers.max() < count
    assert len(set(numbers.tolist())) == 2000


def test_all_orders_are_as_likely():
    seen = Counter(tuple(Permutation(4, 1, epoch)(np.arange(4))) for epoch in range(2400))
    assert len(seen) == 24
    assert sum((one - 100) ** 2 / 100 for one in seen.values()) < 49.7  # χ² of 23, 0.1 %
    # and a number says nothing of the one before it
    places = Permutation(10_000, 3)(np.arange(10_000)).astype(float)
    assert abs(np.corrcoef(places[1:], places[:-1])[0, 1]) < 0.04


class Windows:
    """Windows in runs, without videos."""

    def __init__(self, lengths):
        self.lengths = np.array(lengths, np.uint8)

    def __len__(self):
        return int(self.lengths.sum())

    def runs(self, together):
        assert together > 1
        yield self.lengths[:2]
        yield self.lengths[2:]

    def batch(self, numbers, soon=None):
        return {"window": np.array(numbers)}

    def stop_reading_ahead(self):
        pass


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(window_order, "_PIECE", 3)
    monkeypatch.setattr(window_order, "_ROW", 4)


LENGTHS = st.lists(st.integers(1, 5), max_size=20)


@given(LENGTHS, st.data())
def test_runs_are_found_by_number(lengths, data):
    chosen = data.draw(
        st.lists(st.integers(0, len(lengths) - 1), max_size=9) if lengths else st.just([])
    )
    ends = np.cumsum([0, *lengths])
    expected = [n for run in chosen for n in range(ends[run], ends[run + 1])]
    runs = Runs(Windows(lengths).runs(2))
    assert len(runs) == len(lengths)
    assert runs.windows(np.array(chosen, int)).tolist() == expected


@given(LENGTHS, st.integers(0, 9), st.data())
def test_an_epoch_has_each_window_once_from_any_place_on(lengths, seed, data):
    windows = Windows(lengths)
    options = {
        "seed": seed,
        "together": data.draw(st.integers(1, 5)),
        "shuffle": data.draw(st.booleans()),
    }
    sampler = WindowSampler(windows, **options)
    epochs = [list(sampler) for _ in range(3)]
    assert all(sorted(one) == list(range(len(windows))) for one in epochs)
    if options["shuffle"] and options["together"] > 1:  # runs stay whole
        firsts = np.cumsum([0, *lengths])[:-1].tolist()
        follows = dict(zip(epochs[0], epochs[0][1:], strict=False))
        assert all(follows[n] == n + 1 for n in range(len(windows) - 1) if n + 1 not in firsts)
    used = data.draw(st.integers(0, len(windows)))
    sampler.set_epoch(1)
    next(iter(sampler), None)
    resumed = WindowSampler(windows, **options)
    resumed.load_state_dict(json.loads(json.dumps(sampler.state_dict(used))))
    assert list(resumed) == (epochs[1][used:] if used < len(windows) else epochs[2])
    sampler.set_epoch(1)
    start, stop = sorted(data.draw(st.tuples(st.integers(0, 70), st.integers(0, 70))))
    assert sampler.order(start, stop).tolist() == epochs[1][start:stop]


@given(LENGTHS, st.integers(1, 5), st.sampled_from(["drop", "repeat"]))
def test_ranks_share_the_order(lengths, ranks, uneven):
    windows = Windows(lengths)
    whole = WindowSampler(windows, seed=3).order().tolist()
    parts = [
        WindowSampler(windows, seed=3, rank=rank, ranks=ranks, uneven=uneven).order().tolist()
        for rank in range(ranks)
    ]
    assert len({len(part) for part in parts}) == 1
    together = list(chain(*parts))
    count = len(together)
    assert together == (whole + whole * ranks)[:count] if whole else not together
    assert abs(count - len(whole)) < ranks
    assert (count <= len(whole)) if uneven == "drop" else (count >= len(whole))


@given(LENGTHS, st.integers(1, 4), st.integers(1, 7), st.integers(0, 60))
def test_any_number_of_workers_gives_the_same_batches(lengths, workers, batch, used):
    windows = Windows(lengths)
    expected = WindowSampler(windows, seed=5).order().tolist()
    if used >= len(expected):
        used = 0
    parts = []
    for worker in range(workers):
        sampler = WindowSampler(windows, seed=5)
        stream = WindowStream(windows, sampler, batch=batch).shard(worker, workers)
        stream.load_state_dict(stream.state_dict(used=used))
        parts.append([one["window"].tolist() for one in stream])
    dealt = [one for turn in zip_longest(*parts) for one in turn if one is not None]
    left = expected[used:]
    assert dealt == [left[n : n + batch] for n in range(0, len(left), batch)]
