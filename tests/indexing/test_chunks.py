"""Samples lie in the same chunks and places in C and in Python; nothing else is read."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.indexing import native
from fragdex.indexing.native_plain import chunk_starts_plain, extents_plain, places_plain

WORDS = st.sampled_from([0, 1, 5, 6, 2**32 - 1])
PLACES = st.sampled_from([0, 1, 5, 6, 11, 2**32, 2**63 - 1, 2**63 - 6, -(2**63), -1])


def numbers(values):
    return np.array(values, np.int64)


def outcome(places, size, start, offset, first, count):
    into = np.full(count, -7)
    try:
        places(numbers(size), numbers(start), numbers(offset), first, into)
    except ValueError:
        return "refused"
    return into.tolist()


@st.composite
def chunks(draw):
    """Tables in which each sample has a size and a chunk; chunks may be empty."""
    first, count = draw(st.integers(0, 5)), draw(st.integers(1, 8))
    stop = first + count
    sizes = draw(st.lists(WORDS, min_size=stop, max_size=stop + 2))
    start = [draw(st.integers(0, first))]
    start = sorted([*start, *draw(st.lists(st.integers(start[0], stop - 1), max_size=6))])
    offset = draw(st.lists(PLACES, min_size=len(start), max_size=len(start)))
    return sizes[:1] if draw(st.booleans()) else sizes, start, offset, first, count


def one_by_one(size, start, offset, first, count):
    """Each sample by itself, as 8.7.4 says it."""
    places = []
    for sample in range(first, first + count):
        chunk = max(k for k in range(len(start)) if start[k] <= sample)
        each = size * (sample + 1) if len(size) == 1 else size
        place = offset[chunk] + sum(each[start[chunk] : sample])
        places.append(_wrapped(place))
    return places


def _wrapped(number):
    return (number + 2**63) % 2**64 - 2**63


@given(chunks())
def test_samples_lie_where_their_chunk_and_those_before_say(tables):
    expected = one_by_one(*tables)
    assert outcome(places_plain, *tables) == expected
    assert outcome(native.places, *tables) == expected


@given(
    st.lists(WORDS, max_size=4),
    st.lists(st.tuples(st.integers(-2, 9) | st.just(2**62), PLACES), max_size=4),
    st.integers(-2, 6) | st.just(2**63 - 2),
    st.integers(0, 4),
)
def test_impossible_tables_are_refused(size, given_chunks, first, count):
    start, offset = ([c[k] for c in given_chunks] for k in (0, 1))
    tables = size, start, offset, first, count
    places = outcome(places_plain, *tables)
    assert outcome(native.places, *tables) == places
    if not size or not start or start[0] > first:
        assert places == "refused" or (not size and not first and not count)


def test_columns_of_different_lengths_are_refused():
    for places in (native.places, places_plain):
        with pytest.raises(ValueError, match="differ in length"):
            places(numbers([1]), numbers([0]), numbers([]), 0, numbers([0]))


def starts(chunk_starts, rows, chunks, stride=12, first=0, each=4):
    """What is told, or that it is refused; what is written counts only where it is told."""
    into = np.full(chunks, -7)
    packed = np.array(rows, ">u4").tobytes() if not isinstance(rows, bytes) else rows
    try:
        held = chunk_starts(packed, stride, first, each, into)
    except ValueError:
        return "refused"
    return held if held is None else (held, into.tolist())


ENTRIES = st.lists(st.tuples(st.integers(0, 9) | WORDS, WORDS, st.just(1)), min_size=1, max_size=6)


@given(ENTRIES, st.integers(0, 8))
def test_chunks_begin_behind_the_samples_of_those_before(entries, chunks):
    chunk_starts = starts(native.chunk_starts, entries, chunks)
    assert starts(chunk_starts_plain, entries, chunks) == chunk_starts
    numbers_of_chunks = [first for first, _, _ in entries]
    if numbers_of_chunks != sorted(numbers_of_chunks):
        assert chunk_starts is None
        return
    counts = []
    for chunk in range(1, chunks + 1):
        holds = [each for first, each, _ in entries if first <= chunk]
        counts.append(holds[-1] if holds else entries[0][1])
    assert chunk_starts == (sum(counts), [sum(counts[:k]) for k in range(chunks)])


PLACE = st.integers(-2, 14) | st.sampled_from([2**16, 2**62])


@given(st.binary(max_size=40), PLACE, PLACE, PLACE, st.integers(0, 4))
def test_impossible_rows_are_refused(rows, stride, first, each, chunks):
    chunk_starts = starts(native.chunk_starts, rows, chunks, stride, first, each)
    assert starts(chunk_starts_plain, rows, chunks, stride, first, each) == chunk_starts
    if stride < 4 or not rows or len(rows) % stride or not 0 <= max(first, each) <= stride - 4:
        assert chunk_starts == "refused"


STEPS = st.sampled_from([0, 1, 40, 512, -7, 2**31 - 1, -(2**31)])


@st.composite
def tracks(draw):
    """Tables of a track: sizes, chunks, durations, offsets, starts of stretches, samples."""
    count = draw(st.integers(1, 9))

    def rising(least):
        return sorted(draw(st.lists(st.integers(least, count + 2), max_size=5)))

    def steps():
        stops = [*rising(0), draw(st.sampled_from([count, count + 9]))]
        return sorted(stops), draw(st.lists(STEPS, min_size=len(stops), max_size=len(stops)))

    sizes = draw(st.none() | st.lists(WORDS, min_size=count, max_size=count + 2))
    starts = [0, *rising(0)]
    chunks = starts, draw(st.lists(PLACES, min_size=len(starts), max_size=len(starts)))
    stretches = sorted({0, *draw(st.lists(st.integers(0, count - 1), max_size=4))})
    offsets = steps() if draw(st.booleans()) else None
    return sizes, draw(WORDS), chunks, steps(), offsets, stretches, count


def extents_of(extents, sizes, each, chunks, durations, offsets, starts, count):
    words = None if sizes is None else np.array(sizes, ">u4")
    tables = (None if t is None else tuple(map(numbers, t)) for t in (chunks, durations, offsets))
    return np.array(extents(words, each, *tables, numbers(starts), count)).tolist()


def extents_one_by_one(sizes, each, chunks, durations, offsets, starts, count):
    def at(steps, sample):
        return next(v for stop, v in zip(*steps, strict=True) if stop > sample)

    sizes = [each] * count if sizes is None else sizes
    rows, dts = [[] for _ in range(6)], 0
    for start, stop in zip(starts, [*starts[1:], count], strict=True):
        data, times, begin = [], [], dts
        for sample in range(start, stop):
            chunk = max(k for k in range(len(chunks[0])) if chunks[0][k] <= sample)
            place = chunks[1][chunk] + sum(sizes[chunks[0][chunk] : sample])
            step = at(durations, sample)
            cts = dts + (at(offsets, sample) if offsets else 0)
            data.append((place, place + sizes[sample]))
            times.append((cts, cts + max(step, 0)))
            dts += step
        edges = [min(p[0] for p in data), max(p[1] for p in data)]
        edges += [min(t[0] for t in times), max(t[1] for t in times)]
        for row, value in zip(rows, [*edges, begin, dts - begin], strict=True):
            row.append(value)
    return rows


@given(tracks())
def test_stretches_reach_as_far_as_their_samples(tables):
    extents = extents_of(native.extents, *tables)
    assert extents_of(extents_plain, *tables) == extents
    if max(map(abs, tables[2][1])) < 2**62:  # nothing wraps round
        assert extents == extents_one_by_one(*tables)


@pytest.mark.parametrize("extents", [native.extents, extents_plain])
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"sizes": [1, 2, 3]}, "without a size"),
        ({"chunks": ([0, 3, 2], [0, 0, 0])}, "do not rise"),
        ({"chunks": ([1], [0])}, "do not rise"),
        ({"chunks": ([], [])}, "do not rise"),
        ({"chunks": ([0], [])}, "differ in length"),
        ({"durations": ([3], [1])}, "without a duration"),
        ({"durations": ([], [])}, "without a duration"),
        ({"offsets": ([3], [1])}, "without a duration or offset"),
        ({"starts": [0, 2, 2]}, "do not rise"),
        ({"starts": [1]}, "do not rise"),
        ({"starts": [0, 4]}, "do not rise"),
        ({"starts": []}, "do not rise"),
        ({"count": -1}, "without a size"),
    ],
)
def test_stretches_of_impossible_tables_are_refused(extents, change, why):
    tables = {
        "sizes": [1, 2, 3, 4],
        "each": 0,
        "chunks": ([0], [0]),
        "durations": ([4], [1]),
        "offsets": None,
        "starts": [0],
        "count": 4,
    }
    with pytest.raises(ValueError, match=why):
        extents_of(extents, **(tables | change))


def test_many_words_are_summed_as_one_by_one():
    sizes = [2**32 - 1] * 1537 + [7]
    tables = sizes, 0, ([0], [0]), ([1538], [1]), None, [0], 1538
    assert extents_of(native.extents, *tables)[1] == [sum(sizes)]
