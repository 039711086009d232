"""Media data that are made to look like samples cost no more than others, and invent nothing."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.repairing.broken import check_spans, film
from tests.repairing.test_sound_found import without_moov

import fragdex
from fragdex.errors import Unprocessable
from fragdex.repairing import rates, syntax

SIZE = 1 << 14
KINDS = {
    "frames of AAC": b"\x01" * SIZE,
    "units": b"\0\0\0\x06\x65\x88\x82\0\x1b\xff" * (SIZE // 10),
    "long units": b"".join(
        (SIZE - at).to_bytes(4, "big") + b"\x41\x9a\x23\x18" for at in range(0, SIZE, 8)
    ),
    "packets of Opus": b"\x48" * SIZE,
    "OBUs": b"\x32\x02\x30\x40" * (SIZE // 4),
    "packets and pictures": (b"\x48" * 30 + b"\x1a\x01\x88") * (SIZE // 33),
    "frames of VP9": b"\x86\0\x40\x92" * (SIZE // 4),
    "superframes": (b"\x86\0\x40\x92" + bytes([0xC0, 4, 0xC0])) * (SIZE // 7),
    "headers of FLAC": b"\xff\xf8\x24\x08\0\x9d" * (SIZE // 6),
    "zeros": bytes(SIZE),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["moov-last.mp4", "av1-opus.mp4", "vp9-flac.mp4", "pcm.mov"])
def test_the_cost_grows_with_the_bytes(name: str, kind: str) -> None:
    good = film(name)
    data = good.data[:32] + bytes(4) + b"mdat" + KINDS[kind]
    with fragdex.open_source(data) as source:
        try:
            repair = fragdex.repair(source, good.data)
        except Unprocessable:
            pass
        else:
            check_spans(data, repair)
            assert repair.index(data).tracks
        assert source.bytes_read < 64 * len(data)
        assert source.requests < 64 + len(data) // 256


@pytest.mark.parametrize("kind", [*KINDS, "payloads in payloads", "payloads that are cut"])
@pytest.mark.parametrize("name", ["moov-last.mp4", "hevc-aac.mp4", "vvc/idr.mp4"])
def test_the_cost_grows_with_the_bytes_where_the_stream_alone_is_asked(
    name: str, kind: str
) -> None:
    payloads = {
        "payloads in payloads": b"AAAAc\1\0\x08DEVC\0\1\xff\xf0" * (SIZE // 8),
        "payloads that are cut": b"DEVC\0\1\0\x18STRM\0\1\0\x30" * (SIZE // 16),
    }
    whole, truth = without_moov(name)
    first = min(truth[1])
    picture = whole[first : first + truth[1][first]]
    data = whole[: whole.index(b"mdat") - 4] + bytes(4) + b"mdat"
    data += picture * 4 + (KINDS | payloads)[kind]
    with (
        fragdex.open_source(data) as source,
        patch.object(rates, "items", side_effect=rates.items) as read,
    ):
        with suppress(Unprocessable):
            check_spans(data, fragdex.repair(source))
        assert source.bytes_read < 64 * len(data)
        assert source.requests < 64 + len(data) // 256
    assert sum(len(call.args[0]) for call in read.mock_calls) < 64 * len(data)


def test_what_is_no_film_is_refused() -> None:
    good = film("moov-last.mp4")
    for data in (b"", b"\0", b"%PDF-1.7" + bytes(4000), bytes(100_000)):
        with pytest.raises(Unprocessable):
            fragdex.repair(data, good.data)


def test_a_large_hole_costs_no_memory_and_is_not_read(tmp_path: Path) -> None:
    import tracemalloc

    good = film("moov-last.mp4")
    first, last = good.mdat
    path = tmp_path / "sparse.mp4"
    with open(path, "wb") as file:
        file.write(good.data[: first - 8] + b"\0\0\0\1mdat" + bytes(8) + good.data[first:last])
        file.seek(256 << 20, 1)
        file.write(good.data[first:last])
    tracemalloc.start()
    try:
        with fragdex.open_source(path) as source:
            repair = fragdex.repair(source, good.data)
            assert source.bytes_read < 128 << 20 or not has_holes(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 << 20
    assert [track.samples for track in repair.tracks] >= [98, 64]


def test_an_open_file_stays_at_its_position(tmp_path: Path) -> None:
    """Whoever opened it reads on; to look for holes moves the position of its descriptor."""
    good = film("moov-last.mp4")
    first, last = good.mdat
    path = tmp_path / "sparse.mp4"
    with open(path, "wb") as file:
        file.write(good.data[: first - 8] + b"\0\0\0\1mdat" + bytes(8) + good.data[first:last])
        file.seek(1 << 20, 1)
        file.write(b"\1")
    with open(path, "rb", buffering=0) as file:
        file.seek(7)
        fragdex.repair(file, good.data)
        assert file.tell() == 7
        with fragdex.open_source(file) as source, source.twin() as twin:  # type: ignore[union-attr]
            assert source.next_data(first) == twin.next_data(first) == first
        assert file.tell() == 7


def has_holes(path: Path) -> bool:
    """Whether the file system keeps none of the zeros that nobody wrote."""
    return os.stat(path).st_blocks * 512 < path.stat().st_size // 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("holes")


@given(
    st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=2) | st.just(bytes(5000)))),
    st.lists(st.floats(0, 1), max_size=6),
    st.binary(min_size=1, max_size=2),
)
def test_zeros_end_where_the_first_other_byte_is_and_patterns_are_found_beside_them(
    folder: Path, parts: list[tuple[int, bytes]], places: list[float], pattern: bytes
) -> None:
    """Of holes of a file, of zeros that were written, and of both in a row."""
    path = folder / "holes"
    with open(path, "wb") as file:
        for holes, data in parts:
            file.seek(holes * 4096, 1)
            file.write(data)
        file.truncate(file.tell() + 4096)
    data = path.read_bytes()
    with patch.object(syntax, "BLOCK", 1024), patch.object(syntax, "_ZEROS", bytes(1024)):
        windows = [syntax.Window(fragdex.open_source(one), len(data)) for one in (path, data)]
        for at in (round(place * len(data)) for place in places):
            first = len(data) - len(data[at:].lstrip(b"\0"))
            assert [window.skip_zeros(at) for window in windows] == [first, first]
            place = data.find(pattern, at)
            places_found = [window.find(pattern, at, len(data)) for window in windows]
            assert places_found == [None if place < 0 else place] * 2
        for window in windows:
            window.source.close()
