"""Runs of samples add up to the same in C and in Python, and nothing is read beside them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.boxes.fragments import (
    SAMPLE_COMPOSITION_TIME_OFFSET,
    SAMPLE_DURATION,
    SAMPLE_FLAGS,
    SAMPLE_SIZE,
)
from fragdex.indexing import native
from fragdex.indexing.headers import RowColumns
from fragdex.indexing.native_plain import sums_plain
from fragdex.indexing.runs import RunKind

WORDS = st.sampled_from([0, 1, 10, 2**16, 2**16 + 1, 2**31 - 1, 2**31, 2**32 - 1])
ASKED = st.sampled_from([0, 1, 2])


def outcome(sums, *arguments):
    try:
        return [column.tolist() for column in sums(*arguments)]
    except ValueError:
        return "refused"


def numbers(values):
    return np.array(values, np.int64)


def bytes_of(values):
    return np.array(values, np.uint8)


@st.composite
def runs(draw):
    """Rows of words, runs of them, and what is asked of each."""
    kind = RunKind(0, draw(st.integers(0, 15)) << 8)
    counts = draw(st.lists(st.integers(1, 6), max_size=6))
    if draw(st.booleans()):
        counts = counts[:1] * len(counts)
    width = kind.stride // 4
    words = draw(st.lists(WORDS, min_size=width * sum(counts), max_size=width * sum(counts)))
    lead = draw(st.integers(0, 3))
    data = bytes(lead) + np.array(words, ">u4").tobytes()
    counts = numbers(counts)
    at = lead + (np.cumsum(counts) - counts) * kind.stride
    durations = draw(st.lists(WORDS, min_size=len(counts), max_size=len(counts)))
    first, rest = (
        bytes_of(draw(st.lists(ASKED if width else st.just(0), min_size=n, max_size=n)))
        for n in (len(counts), len(counts))
    )
    return data, at, counts, kind.columns, numbers(durations), first, rest


@given(runs())
def test_compiled_and_plain_add_up_to_the_same(given_runs):
    if native.compiled is None:
        pytest.skip("the C extension was not compiled")
    sums = outcome(native.sums, *given_runs)
    assert sums == outcome(sums_plain, *given_runs)
    assert sums != "refused"


@given(
    st.binary(max_size=40),
    st.lists(st.tuples(st.integers(-9, 50), st.integers(-1, 2**40), ASKED, ASKED), max_size=4),
    st.builds(RowColumns, st.integers(-4, 20), *[st.integers(-5, 20)] * 4, st.just(1)),
)
def test_impossible_runs_are_refused(data, given_runs, columns):
    if native.compiled is None:
        pytest.skip("the C extension was not compiled")
    at, counts, first, rest = (
        (list(c) for c in zip(*given_runs, strict=True)) if given_runs else ([], [], [], [])
    )
    arguments = (
        data,
        numbers(at),
        numbers(counts),
        columns,
        numbers(at),
        bytes_of(first),
        bytes_of(rest),
    )
    assert outcome(native.sums, *arguments) == outcome(sums_plain, *arguments)


def test_each_sample_counts():
    kind = RunKind(1, SAMPLE_DURATION | SAMPLE_SIZE | SAMPLE_FLAGS | SAMPLE_COMPOSITION_TIME_OFFSET)
    rows = np.array([[10, 5, 0, 2**32 - 3], [20, 6, 0x10000, 4], [30, 7, 0, 0]], ">u4").tobytes()
    for sums in (native.sums, sums_plain):
        columns = sums(
            rows, *(numbers([n]) for n in (0, 3)), kind.columns, numbers([99]), *[bytes_of([2])] * 2
        )
        assert [column.tolist() for column in columns] == [
            *([18], [60], [-3], [60], [1]),
            [[0, 0], [0, 2], [0, 30], [-3, 30]],
        ]


def test_arguments_of_different_lengths_are_refused():
    one, none = numbers([0]), numbers([])
    for sums in (native.sums, sums_plain):
        with pytest.raises(ValueError, match="differ in length"):
            sums(b"abcd", one, none, RowColumns(4, size=0), one, bytes_of([1]), bytes_of([1]))
