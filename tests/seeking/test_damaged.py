"""Saved indexes whose columns are damaged: opening does not look, seeking does not trust."""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fragdex
from fragdex.errors import DamagedIndex
from fragdex.formats import fidx
from fragdex.formats.fidx_head import parse_head
from fragdex.fragments.table import SyncTable
from fragdex.seeking.seek import Seeker
from fragdex.testing import movie

FILES = {
    "fragmented": movie(fragments=6, samples=5, tracks=2, reordered=True),
    "progressive": movie(fragments=4, samples=5, fragmented=False),
    "sidx": movie(fragments=5, sidx=True),
    "mfra": movie(fragments=5, mfra=True),
}
SAVED = {
    name: fragdex.index(data).export("fidx", samples=name in ("fragmented", "progressive"))
    for name, data in FILES.items()
}
TIMES = (0.0, 0.1, 0.55, 1.0, 1e9, -1.0, math.inf)
NUMBERS = st.one_of(st.integers(-3, 40), st.integers(-(2**63), 2**63 - 1))


def ask(index: fragdex.Index) -> None:
    """Everything an index answers; only our own errors may come out."""
    ours = suppress(fragdex.FragdexError)
    for track in index.tracks:
        for time in TIMES:
            with ours:
                repr(track.seek(time))
                assert track.seek(time).range.start >= 0
        with ours:
            track.seek_many(np.array(TIMES))
        with ours:
            repr((track, track.start, track.stop))
    for time in TIMES[:-1]:
        with ours:
            index.span(time, time + 0.5)
        with ours:
            index.plan(time)
    repr(index)
    index._repr_html_()


@pytest.mark.parametrize("name", SAVED)
@given(data=st.data())
def test_a_wrong_number_in_any_column_brings_our_errors_alone(name: str, data: st.DataObject):
    saved = bytearray(SAVED[name])
    start = -(-parse_head(memoryview(SAVED[name]))[1] // 64) * 64
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(start // 8, len(saved) // 8 - 1)) * 8
        number = data.draw(NUMBERS)
        saved[at : at + 8] = number.to_bytes(8, "little", signed=True)
    ask(fragdex.open_index(bytes(saved)))


@pytest.mark.parametrize("name", ["fragmented", "progressive"])
@given(row=st.integers(0, 3), number=NUMBERS)
@example(row=1, number=-1)
@example(row=1, number=4)
@example(row=1, number=0)
def test_a_wrong_row_is_never_answered(name: str, row: int, number: int):
    track = fragdex.open_index(SAVED[name]).track(1)
    if row >= len(track.sync_samples):
        return
    right = Seeker(track.fragments, track.sync_samples)
    columns = {key: column.copy() for key, column in track.sync_samples.columns().items()}
    columns["fragment"][row] = number
    wrong = Seeker(track.fragments, SyncTable.of(columns))
    for target in sorted({int(c) for c in track.sync_samples.cts} | {-1, 1 << 40}):
        try:
            hit = wrong.find(target)
            many = wrong.find_many(np.array([target]))
        except DamagedIndex:
            continue
        assert hit == right.find(target)
        assert many.fragment[0] == hit[0]


def test_verify_names_what_the_seek_would_stumble_over():
    index = fragdex.open_index(SAVED["fragmented"])
    track = index.track(1)
    columns = {key: column.copy() for key, column in track.sync_samples.columns().items()}
    columns["sample"][0] += 7
    track.sync_samples = SyncTable.of(columns)
    with pytest.raises(DamagedIndex, match="do not fit its fragments"):
        track.seek(0)
    with pytest.raises(DamagedIndex, match="samples of their fragments"):
        fidx.verify(index)
    with pytest.raises(DamagedIndex, match="samples of their fragments"):
        fidx.verify(fidx.write(index))
