"""Frames as an array: any index gives what numpy gives of all frames."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import fragdex
from decoding.filming import MATRICES, numbered, shown_by
from fragdex.errors import UndecodableMedia

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILM = (FIXTURES / "open-gop.mp4").read_bytes()
FRAMES = fragdex.Frames(FILM, size=(8, 6))
WHOLE = np.stack([frame.data for frame in FRAMES])


def test_it_says_what_it_is():
    assert (FRAMES.shape, FRAMES.ndim, FRAMES.dtype) == (WHOLE.shape, WHOLE.ndim, WHOLE.dtype)
    assert FRAMES.chunks == ((12, 12, 12, 12, 2), (6,), (8,), (3,))
    assert (np.asarray(FRAMES) == WHOLE).all()
    assert np.asarray(FRAMES, np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="without a copy"):
        FRAMES.__array__(copy=False)
    deep = fragdex.Frames(FILM, format="gray16")
    assert (deep.shape, deep.dtype) == ((50, 48, 64, 1), np.uint16)
    assert deep[:2].data.shape[1:] == deep.shape[1:]


@settings(max_examples=60)
@given(hnp.basic_indices((50, 6, 8, 3)))
def test_any_index_is_that_of_numpy(key):
    pixels = FRAMES[key if isinstance(key, tuple) else (key,)]
    assert np.array_equal(pixels, WHOLE[key])


@given(st.lists(st.integers(-50, 49), max_size=6), st.integers(0, 5))
def test_lists_and_masks_are_those_of_numpy(numbers, row):
    mask = np.zeros(50, bool)
    mask[numbers] = True
    for key in (numbers, np.array(numbers, np.int64), mask):
        if len(numbers):
            assert np.array_equal(FRAMES[key].data, WHOLE[key])
        plain = np.array(key, bool if key is mask else int)
        assert np.array_equal(FRAMES[key, row], WHOLE[plain, row])


def test_what_is_no_index_is_refused():
    for wrong in ((None, 1), (0, None)):
        with pytest.raises(TypeError, match="four axes"):
            FRAMES[wrong]
    with pytest.raises(IndexError, match="four axes"):
        FRAMES[0, 0, 0, 0, 0]
    with pytest.raises(IndexError, match="there is no frame 50"):
        FRAMES[50, 0]
    with pytest.raises(TypeError, match="planes"):
        _ = fragdex.Frames(FILM, format="yuv").shape


@pytest.mark.parametrize("name", MATRICES)
def test_turned_frames_have_the_shape_that_is_said(name):
    film = shown_by(numbered(3, 30, keys=3, bframes=0, fragmented=False), MATRICES[name][0])
    with fragdex.Frames(film) as frames:
        assert frames[:].data.shape == frames.shape


def test_sync_frames_are_spread_and_cost_nothing_else():
    with fragdex.Frames(FILM, cache=0) as frames:
        assert frames.sync_frames(1).numbers.tolist() == [24]
        assert frames.sync_frames(2).numbers.tolist() == [12, 36]
        before = frames.decoded
        batch = frames.sync_frames(99)
        assert batch.numbers.tolist() == frames.key_frames.tolist()
        assert frames.decoded - before == len(batch)
        with pytest.raises(ValueError, match="at least one"):
            frames.sync_frames(0)


def test_pictures_of_another_size_than_is_said_need_a_size():
    film = bytearray(FILM)
    at = film.index(b"avc1", film.index(b"stsd")) + 4 + 24
    film[at : at + 4] = (32).to_bytes(2, "big") + (24).to_bytes(2, "big")
    frames = fragdex.Frames(bytes(film))
    assert frames.shape == (50, 24, 32, 3)
    with pytest.raises(UndecodableMedia, match="64 × 48, and its sample entry says 32 × 24"):
        frames[:2, 0]
    assert fragdex.Frames(bytes(film), size=(32, 24))[:2, 0].shape == (2, 32, 3)
