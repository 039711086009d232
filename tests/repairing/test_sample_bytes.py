"""What is asked of the bytes of samples: the C extension and Python say the same of any."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.repairing.broken import film

from fragdex.indexing.native import compiled
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
