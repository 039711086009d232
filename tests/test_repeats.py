"""`fragdex.testing.repeated`: whole boxes, as many as the count says."""

import contextlib

import pytest

import fragdex
from fragdex.boxes import parse
from repeats import CLAIMED, DIMENSIONS, repeated, repeated_to

UNEVEN = {"fragments-of-many-shapes"}
"""Files whose repeated things differ in size."""


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_a_file_is_boxes_to_its_end_and_grows_by_what_it_repeats(dimension: str) -> None:
    sizes = [len(repeated(dimension, count)) for count in (10, 20, 30)]
    assert sizes[0] < sizes[1] < sizes[2]
    if dimension not in UNEVEN:
        assert abs((sizes[2] - sizes[1]) - (sizes[1] - sizes[0])) <= 20
    data = repeated(dimension, 3)
    assert data == repeated(dimension, 3)
    at = 0
    while at < len(data):
        at += int.from_bytes(data[at : at + 4], "big")
    assert at == len(data)


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("count", [1, 20])
def test_every_file_is_indexed_or_refused(dimension: str, count: int) -> None:
    with contextlib.suppress(fragdex.FragdexError):
        fragdex.index(repeated(dimension, count))
    with contextlib.suppress(fragdex.FragdexError):
        parse(repeated(dimension, count))


def test_a_size_is_met() -> None:
    assert abs(len(repeated_to("trafs", 50_000)) - 50_000) < 1000
    assert len(repeated_to("trafs", 0)) == len(repeated("trafs", 1))


def test_every_dimension_says_what_it_repeats() -> None:
    assert all(text.endswith(".") for text in DIMENSIONS.values())
    assert set(DIMENSIONS) > CLAIMED
    with pytest.raises(KeyError):
        repeated("no such thing", 1)
