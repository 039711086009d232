"""Samples lie at the same places in C and in Python, and nothing is read beside their tables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.fragments import hop
from fragdex.fragments.spans import places_plain

WORDS = st.sampled_from([0, 1, 5, 6, 2**32 - 1])
PLACES = st.sampled_from([0, 1, 5, 6, 11, 2**32, 2**63 - 1, 2**63 - 6, -(2**63), -1])


def numbers(values):
    return np.array(values, np.int64)


def outcome(places, size, start, offset, first, count):
    into = np.full(count, -7)
    try:
        return places(numbers(size), numbers(start), numbers(offset), first, into), into.tolist()
    except ValueError:
        return "refused"


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
    found, ends = [], []
    for sample in range(first, first + count):
        chunk = max(k for k in range(len(start)) if start[k] <= sample)
        each = size * (sample + 1) if len(size) == 1 else size
        place = offset[chunk] + sum(each[start[chunk] : sample])
        found.append(_wrapped(place))
        ends.append(_wrapped(place + each[sample]))
    return all(a >= b for a, b in zip(found[1:], ends, strict=False)), found


def _wrapped(number):
    return (number + 2**63) % 2**64 - 2**63


@given(chunks())
def test_samples_lie_where_their_chunk_and_those_before_say(tables):
    expected = one_by_one(*tables)
    assert outcome(places_plain, *tables) == expected
    assert outcome(hop.places, *tables) == expected


@given(
    st.lists(WORDS, max_size=4),
    st.lists(st.tuples(st.integers(-2, 9) | st.just(2**62), PLACES), max_size=4),
    st.integers(-2, 6) | st.just(2**63 - 2),
    st.integers(0, 4),
)
def test_impossible_tables_are_refused(size, given_chunks, first, count):
    start, offset = ([c[k] for c in given_chunks] for k in (0, 1))
    tables = size, start, offset, first, count
    found = outcome(places_plain, *tables)
    assert outcome(hop.places, *tables) == found
    if not size or not start or start[0] > first:
        assert found == "refused" or (not size and not first and not count)


def test_columns_of_different_lengths_are_refused():
    for places in (hop.places, places_plain):
        with pytest.raises(ValueError, match="differ in length"):
            places(numbers([1]), numbers([0]), numbers([]), 0, numbers([0]))
