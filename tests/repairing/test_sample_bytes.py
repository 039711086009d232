"""What is asked of the bytes of samples: the C extension and Python say the same of any."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.repairing.broken import Film, film
from tests.repairing.test_damage import damaged as damaged_film
from tests.repairing.test_damage import known

import fragdex
from fragdex.errors import Unprocessable
from fragdex.indexing.native import compiled
from fragdex.repairing import syntax, walk
from fragdex.repairing.flac import crc16_ends, crc16_ends_plain
from fragdex.repairing.sound import ELEMENTS, read_frame, read_frame_plain
from fragdex.repairing.syntax import bare_zeros, bare_zeros_plain, find_bytes

needs_c = pytest.mark.skipif(compiled is None, reason="the C extension was not compiled")


def frames(name: str, track: int) -> list[bytes]:
    good = film(name)
    return [good.data[at : at + size] for at, size in good.truth[track].items()]


FRAMES = frames("moov-last.mp4", 2) + frames("surround.mp4", 1)[:8]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A frame with a few other bytes, cut off or with more behind it."""
    data = bytearray(draw(st.sampled_from(FRAMES)))
    for _ in range(draw(st.integers(0, 3))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))]) + draw(st.binary(max_size=40))


@needs_c
@given(st.binary(max_size=600) | damaged(), st.integers(0, 12), st.sampled_from([0, *ELEMENTS]))
def test_a_frame_of_aac_ends_at_one_place(data: bytes, rate: int, configuration: int) -> None:
    assert read_frame(data, rate, configuration) == read_frame_plain(data, rate, configuration)


def test_each_frame_of_a_film_is_read_to_its_end() -> None:
    for frame in frames("moov-last.mp4", 2):
        assert read_frame_plain(frame, 8, 0)[0] == len(frame) == read_frame(frame, 8, 0)[0]


@needs_c
@given(st.binary(max_size=300) | st.sampled_from(frames("vp9-flac.mp4", 2)), st.integers(-1, 9))
def test_checksums_are_right_at_the_same_places(data: bytes, least: int) -> None:
    assert crc16_ends(data, least, 4) == crc16_ends_plain(data, least, 4)


@needs_c
@given(st.lists(st.sampled_from(b"\0\0\0\1\2\3a"), max_size=40).map(bytes))
def test_bare_zeros_are_at_the_same_place(data: bytes) -> None:
    assert bare_zeros(data) == bare_zeros_plain(data)
    for pattern in (b"", b"\0", b"\0\0\1", bytes(4), data[5:9]):
        assert find_bytes(data, pattern) == data.find(pattern)


WALKED = (
    *("moov-last.mp4", "hevc-aac.mp4", "av1-opus.mp4", "pcm.mov", "avc3.mp4", "aac.m4a"),
    *("open-gop.mp4", "psp.mp4", "surround.mp4", "pcm-24.mov", "negative-cts.mp4"),
    *("open-gop.mp4 + av1-opus.mp4", "all-intra.mp4 + av1-opus.mp4"),
    "hevc-aac.mp4 + av1-opus.mp4",
)


def outcome(broken: bytes, good: Film) -> object:
    """Everything that a repair says."""
    try:
        repair = fragdex.repair(broken, good.data)
    except Unprocessable as error:
        return str(error)
    tables = [
        (track.id, track.proved, {k: c.tolist() for k, c in track.table().columns().items()})
        for track in repair.tracks
    ]
    return tables, repair.spans, repair.findings


@contextlib.contextmanager
def blocks_of(size: int) -> Iterator[None]:
    """The C extension is given so many bytes at once, and four times as many where that helps."""
    with (
        patch.object(syntax, "PIECE_SIZE", size),
        patch.object(walk, "HELD", (1, size, 2 * size, 4 * size)),
    ):
        yield


@needs_c
@given(
    st.sampled_from(WALKED),
    st.sampled_from(["zeros", "cut", "foreign"]),
    st.floats(0, 1),
    st.sampled_from([1, 40, 512, 1500]),
    st.integers(0, 1 << 32),
    st.sampled_from([64, 700, 4000, 4 << 20]),
)
def test_both_walks_find_the_same(
    name: str, kind: str, where: float, size: int, seed: int, block: int
) -> None:
    good = known(name)
    first, last = good.mdat
    start = first + int(where * (last - first - 1))
    broken = damaged_film(good, kind, start, start + size, seed)
    with patch.object(walk, "compiled", None):
        expected = outcome(broken, good)
    with blocks_of(block):
        assert outcome(broken, good) == expected


@needs_c
@given(st.data())
def test_tracks_of_any_kind_are_walked_or_refused(data: st.DataObject) -> None:
    numbers = st.integers(-2, 300) | st.sampled_from([0, 1, 1 << 40, -(1 << 62)])
    tables = st.binary(max_size=9) | st.sampled_from([bytes(256), b"\1" * 256, b"\1" * 8])
    lane = st.tuples(
        st.integers(-1, 6),
        st.integers(0, 9),
        st.just(1 << 27),
        st.lists(numbers, max_size=15).map(lambda one: np.array(one, np.int64)),
        st.lists(tables, max_size=7),
    )
    lanes = [(*one[:4], *one[4]) for one in data.draw(st.lists(lane, max_size=3))]
    media = data.draw(st.sampled_from([bytes(300), FRAMES[0], known("av1-opus.mp4").data[:4000]]))
    pace = data.draw(st.none() | st.tuples(*[st.floats(-9, 9)] * 6))
    with contextlib.suppress(ValueError, TypeError):
        at, why, *_ = compiled.walk_media(
            lambda at, _: (media, 0),
            0,
            len(media),
            data.draw(st.booleans()),
            tuple(lanes),
            pace,
            (0, -1),
        )
        assert 0 <= at <= len(media)
        assert (at == len(media)) == (why == 0)


@needs_c
@given(
    st.lists(
        st.binary(max_size=40) | st.sampled_from([bytes(1 << 20), bytes(11 << 17), bytes(80)]),
        min_size=6,
        max_size=6,
    )
)
def test_tables_of_other_sizes_are_refused(arguments: list[bytes]) -> None:
    with contextlib.suppress(ValueError):
        size, bits = compiled.aac_frame(*arguments)
        assert 0 <= size <= len(arguments[0]) >= bits >> 3
