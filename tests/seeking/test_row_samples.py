"""Samples of rows that the index does not hold are read from the file, and are the same."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

import fragdex
from fragdex.indexing.samples import RowSamples
from fragdex.testing import movie

HYBRID = Path(__file__).resolve().parents[2] / "fixtures" / "hybrid.mp4"


@pytest.mark.parametrize(
    "data",
    [
        movie(fragments=4, tracks=2, reordered=True),
        movie(fragments=4, tracks=2, fragmented=False),
        HYBRID.read_bytes(),
    ],
    ids=["moofs", "moov", "both"],
)
def test_any_rows_have_the_samples_of_the_whole_file(data: bytes) -> None:
    index = fragdex.index(data, exact=True)
    saved = fragdex.open_index(index.export("fidx", samples=False))
    for known, bare in zip(index.tracks, saved.tracks, strict=True):
        home = bare.home
        rows = RowSamples(bare, fragdex.open_source(data), home.init, home.defaults)
        for start, stop in combinations(range(len(bare.fragments) + 1), 2):
            assert rows.rows(start, stop) == known.samples_of(start, stop)
