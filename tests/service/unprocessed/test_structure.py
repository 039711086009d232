"""What is gathered of a file gives the index of all of it, however its bytes come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex import Indexer
from fragdex.errors import FragdexError
from fragdex.formats import fidx
from fragdex.service.indexing.isolated import IN_THREAD
from fragdex.service.unprocessed.inspection import MOST_BEFORE, MOST_BOXES, Structure
from fragdex.testing import movie
from repeats import DIMENSIONS, repeated, repeated_to
from service.working import FIXTURES

FILES = sorted(path.name for path in FIXTURES.iterdir() if path.suffix in (".mp4", ".mov", ".m4s"))


def told(make):
    try:
        index = make()
    except FragdexError as error:
        return str(error)
    return b"".join(map(bytes, fidx.pieces(index)))


def whole(data):
    indexer = Indexer()
    indexer.feed(data)
    return indexer.finish()


def gathered(data, step):
    structure = Structure()
    for at in range(0, len(data), step):
        structure.feed(data[at : at + step])
    assert not structure.large
    return structure


@pytest.mark.parametrize("step", [1, 7, 1000, 1 << 20])
@pytest.mark.parametrize("name", FILES)
def test_real_files(name, step):
    data = (FIXTURES / name).read_bytes()
    assert told(gathered(data, step).index) == told(lambda: whole(data))


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_files_that_repeat_one_thing(dimension):
    data = repeated(dimension, 3)
    assert told(gathered(data, 11).index) == told(lambda: whole(data))


@given(st.data())
def test_damaged_and_cut_files(data):
    file = bytearray(movie(fragments=3))
    for _ in range(data.draw(st.integers(0, 3))):
        file[data.draw(st.integers(0, len(file) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(file[: data.draw(st.integers(0, len(file)))])
    step = data.draw(st.integers(1, 300))
    assert told(gathered(cut, step).index) == told(lambda: whole(cut))


def kept(structure):
    return sum(len(run) for _, run in structure._runs)


@pytest.mark.parametrize("dimension", ["samples", "tracks", "fragments", "empty-boxes", "ftyps"])
def test_what_is_large_is_let_go(dimension):
    data = repeated_to(dimension, 8 * IN_THREAD)
    structure = Structure()
    for at in range(0, len(data), 10_000):
        structure.feed(data[at : at + 10_000])
        assert kept(structure) <= IN_THREAD
        assert structure._boxes <= MOST_BOXES + 1
    assert structure.large
    assert structure.size == len(data)
    assert kept(structure) == 0


@pytest.mark.parametrize("size", [8, 9, 24, 120, 200])
def test_what_only_looks_like_boxes_is_no_movie_and_costs_no_process(size):
    """Numbers in a row read as boxes without end: none of them begins a movie."""
    data = size.to_bytes(4, "big") * (4 * IN_THREAD)
    structure = Structure()
    for at in range(0, len(data), 10_000):
        structure.feed(data[at : at + 10_000])
        assert structure._boxes <= MOST_BEFORE + 1
        assert kept(structure) <= 16 * (MOST_BEFORE + 1)
    assert (structure.large, structure.size, kept(structure)) == (False, len(data), 0)
    assert told(structure.index).startswith("this is not an ISO base media file")
    assert told(lambda: whole(data)).startswith("this is not an ISO base media file")


@pytest.mark.parametrize("before", [0, 1, MOST_BEFORE - 1])
def test_boxes_before_a_movie_are_passed(before):
    data = before * b"\0\0\0\x08free" + movie(fragments=3)
    assert told(gathered(data, 1000).index) == told(lambda: whole(data))


def test_media_data_are_not_kept():
    structure = Structure()
    structure.feed((1 << 30).to_bytes(4, "big") + b"mdat")
    for _ in range(8):
        structure.feed(bytes(1 << 20))
    assert (structure.large, kept(structure)) == (False, 8)
