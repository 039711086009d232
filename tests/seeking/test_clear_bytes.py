"""Which bytes of encrypted samples are clear, as the boxes of a moof say (ISO/IEC 23001-7, 7.2)."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.boxes import Box, build, make_box
from fragdex.indexing.access import CannotTell
from fragdex.indexing.verified import ClearBytes

SUBSAMPLES = 2
Entries = list[tuple[int, int]]
"""Of a sample: clear bytes, and the protected ones behind them."""


def said(samples: list[Entries], vector: int) -> bytes:
    """What a senc says of its samples."""
    return b"".join(
        bytes(vector)
        + len(entries).to_bytes(2, "big")
        + b"".join(
            clear.to_bytes(2, "big") + hidden.to_bytes(4, "big") for clear, hidden in entries
        )
        for entries in samples
    )


def senc(samples: list[Entries], vector: int = 8, flags: int = SUBSAMPLES) -> Box:
    return make_box("senc", flags=flags, sample_count=len(samples), samples=said(samples, vector))


def traf(track: int, count: int, *boxes: Box) -> Box:
    head = make_box("tfhd", track_ID=track), make_box("trun", sample_count=count)
    return make_box("traf", children=[*head, *boxes])


def moof(*trafs: Box) -> bytes:
    return build(make_box("moof", children=[make_box("mfhd", sequence_number=1), *trafs]))


def clear_offsets(entries: Entries) -> set[int]:
    offsets, at = set(), 0
    for clear, hidden in entries:
        offsets |= set(range(at, at + clear))
        at += clear + hidden
    return offsets


subsamples = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 300)), max_size=5)


@given(st.lists(subsamples, min_size=1, max_size=5), st.sampled_from([0, 8, 16]))
def test_each_sample_is_clear_where_its_subsamples_say_so(samples, vector):
    clear = ClearBytes(moof(traf(1, len(samples), senc(samples, vector))), 1, vector)
    for number, entries in enumerate(samples):
        spans = clear.of(number)
        assert {at for start, stop in spans for at in range(start, stop)} == clear_offsets(entries)
        assert all(start < stop for start, stop in spans)
        assert all(before[1] < after[0] for before, after in pairwise(spans))


def test_clear_bytes_behind_clear_bytes_are_one_range():
    entries = [(5, 0), (3, 16), (0, 4), (2, 0), (1, 1)]
    assert ClearBytes(moof(traf(1, 1, senc([entries]))), 1, 8).of(0) == [(0, 8), (28, 31)]


def test_samples_are_counted_through_all_trafs_of_the_track():
    one, two, three = [(1, 10)], [(2, 10)], [(3, 10)]
    data = moof(
        traf(1, 2, senc([one, two])), traf(2, 1, senc([[(9, 9)]])), traf(1, 1, senc([three]))
    )
    clear = ClearBytes(data, 1, 8)
    assert [clear.of(number) for number in range(3)] == [[(0, 1)], [(0, 2)], [(0, 3)]]
    with pytest.raises(CannotTell):
        clear.of(3)


def test_a_senc_that_ends_early_tells_the_samples_that_it_has():
    whole = senc([[(1, 10)], [(2, 10)], [(3, 10)]])
    for cut in range(1, 17):
        short = whole.replace(samples=whole["samples"][:-cut])
        clear = ClearBytes(moof(traf(1, 3, short), traf(1, 1, senc([[(4, 10)]]))), 1, 8)
        assert (clear.of(0), clear.of(1), clear.of(3)) == ([(0, 1)], [(0, 2)], [(0, 4)])
        with pytest.raises(CannotTell):
            clear.of(2)


def test_without_vectors_nothing_could_be_decrypted_so_all_is_clear():
    assert ClearBytes(moof(traf(1, 1)), 1, 8).of(0) is None
    elsewhere = make_box("saiz", default_sample_info_size=8, sample_count=1)
    group = make_box("sgpd", version=1, grouping_type="seig", default_length=1, entries=[])
    for data, vector in (
        (moof(traf(1, 1)), 0),  # a constant vector needs none of each sample
        (moof(traf(1, 1)), None),
        (moof(traf(1, 1, elsewhere)), 8),  # they stand in the media data
        (moof(traf(1, 1, group)), 8),
    ):
        with pytest.raises(CannotTell):
            ClearBytes(data, 1, vector).of(0)


@pytest.mark.parametrize(
    ("box", "vector"),
    [
        (senc([[(1, 10)]], flags=0), 8),
        (senc([[(1, 10)]], vector=5), 5),
        (senc([[(1, 10)]]), None),
    ],
    ids=["whole samples are encrypted", "a vector of 5 bytes", "vectors of unknown length"],
)
def test_unknown_clear_bytes_are_not_guessed(box, vector):
    with pytest.raises(CannotTell):
        ClearBytes(moof(traf(1, 1, box)), 1, vector).of(0)


def test_the_uuid_box_of_piff_may_say_how_long_its_vectors_are():
    box = make_box(
        "a2394f52-5a9b-4f14-a244-6c427c648df4",
        flags=SUBSAMPLES | 1,
        AlgorithmID=1,
        IV_size=16,
        KID=bytes(16),
        sample_count=1,
        samples=said([[(7, 10)]], 16),
    )
    assert ClearBytes(moof(traf(1, 1, box)), 1, 8).of(0) == [(0, 7)]


def test_bytes_that_are_no_moof_tell_nothing():
    with pytest.raises(CannotTell):
        ClearBytes(b"\0\0\0\4moof", 1, 8).of(0)
