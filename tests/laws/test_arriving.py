"""The same answer, however the bytes come: mapped, read, fed in pieces, jumped over."""

import itertools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fragdex
from fragdex.byterange import ByteRange
from fragdex.indexing import fragment_batches, native
from fragdex.indexing.native_plain import join_plain, span_plain, walk_plain
from fragdex.testing import movie
from fragdex.testing.files import Other, make_file
from fragdex.testing.fragments import Fragment
from fragdex.testing.tracks import Moov, Run, Sample, Track, Traf
from laws import brute
from strategies.files import files


def fed(data, sizes, *, jumping=False):
    """The index of data that arrives in pieces of these sizes, again and again."""
    indexer = fragdex.Indexer()
    at = turn = 0
    while at < len(data):
        if jumping:
            need = indexer.need
            if need is None or need.start >= len(data):
                break
            at = need.start
        size = sizes[turn % len(sizes)]
        indexer.feed(data[at : at + size], at if jumping else None)
        at += size
        turn += 1
    return indexer.finish(len(data))


@given(files())
def test_one_byte_at_a_time(film):
    brute.same(fed(film.data, [1]), fragdex.index(film.data, exact=True))


@given(files(), st.lists(st.integers(1, 300), min_size=1, max_size=8))
def test_pieces_of_any_size(film, sizes):
    whole = fragdex.index(film.data, exact=True)
    brute.same(fed(film.data, sizes), whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fragdex.indexing.growing.AT_ONCE", 1)  # small pieces are not gathered first
        brute.same(fed(film.data, sizes), whole)


MOVIES = st.builds(
    movie,
    st.integers(2, 20),
    tracks=st.integers(1, 2),
    samples=st.integers(1, 3),
    reordered=st.booleans(),
)


@given(st.one_of(files().map(lambda made: made.data), MOVIES), st.integers(1, 2000))
def test_fragments_settled_a_few_at_a_time(data, size):
    late = fragdex.index(data, exact=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fragdex.indexing.growing.AT_ONCE", 1)
        patch.setattr(fragment_batches, "ENOUGH", 1)
        brute.same(fed(data, [size]), late)


BETWEEN = [
    Other(b"\0\0\0\x08free"),
    Other(b"\0\0\0\x0cmdat...."),
    Other(b"\0\0\0\x0cstyp...."),
]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_settled_with_boxes_between(most):
    one = Fragment((Traf(1, (Run((Sample(size=5, duration=3),)),)),))
    for between in itertools.product(BETWEEN, repeat=most):
        data = make_file(Moov((Track(1),)), one, *between, one, *between, one).data
        late = fragdex.index(data, exact=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("fragdex.indexing.growing.AT_ONCE", 1)
            patch.setattr(fragment_batches, "ENOUGH", 1)
            brute.same(fed(data, [1]), late)


@given(files(), st.lists(st.integers(1, 300), min_size=1, max_size=8))
def test_jumping_to_what_is_needed(film, sizes):
    brute.same(fed(film.data, sizes, jumping=True), fragdex.index(film.data, exact=True))


@given(files())
def test_a_file_on_disk(film):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "movie.mp4"
        path.write_bytes(film.data)
        brute.same(fragdex.index(path, exact=True), fragdex.index(film.data, exact=True))


@given(files())
def test_a_file_without_a_view(film):
    class Reads:
        """A seekable file that is not a real one: it can only be read."""

        def __init__(self, data):
            self.data, self.at = data, 0

        def seek(self, at, whence=0):
            self.at = at + (0, self.at, len(self.data))[whence]
            return self.at

        def tell(self):
            return self.at

        def seekable(self):
            return True

        def readable(self):
            return True

        def read(self, size=-1):
            stop = len(self.data) if size < 0 else self.at + size
            piece = self.data[self.at : stop]
            self.at += len(piece)
            return piece

    index = fragdex.index(Reads(film.data), exact=True)
    brute.same(index, fragdex.index(film.data, exact=True))


@given(files(), st.integers(1, 64))
def test_both_walks_pass_the_same_boxes(film, most):
    if native.compiled is None:
        pytest.skip("the C extension was not compiled")
    view = memoryview(film.data)
    for limit in (most, 1 << 16):
        assert_same_walk(native.walk(view, 0, limit), walk_plain(view, 0, limit))


@given(st.binary(max_size=300), st.integers(0, 20))
def test_both_walks_agree_on_any_bytes(data, start):
    if native.compiled is None:
        pytest.skip("the C extension was not compiled")
    view = memoryview(data)
    assert_same_walk(native.walk(view, start), walk_plain(view, start, 1 << 16))


@given(files(), st.data())
def test_both_walks_agree_on_damaged_files(film, data):
    if native.compiled is None:
        pytest.skip("the C extension was not compiled")
    damaged = bytearray(film.data)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(damaged)))
    view = memoryview(bytes(damaged[:cut]))
    assert_same_walk(native.walk(view, 0), walk_plain(view, 0, 1 << 16))


def assert_same_walk(one, other):
    assert len(one) == len(other)
    for mine, theirs in zip(one, other, strict=True):
        if isinstance(mine, np.ndarray):
            assert mine.tolist() == theirs.tolist()
        else:
            assert mine == theirs


@given(
    *(st.binary(max_size=100), st.binary(max_size=9), st.integers(-3, 3)),
    st.lists(st.tuples(st.integers(-12, 120), st.integers(-9, 120) | st.integers(0, 4))),
)
def test_both_joins_take_the_same_bytes(data, made, base, runs):
    if native.compiled is None:
        pytest.skip("the C extension was not compiled")
    offsets = np.array([a for a, _ in runs], np.int64)
    sizes = np.array([b for _, b in runs], np.int64)

    def outcome(join):
        try:
            return bytes(join(data, offsets, sizes, made, base))
        except ValueError:
            return None

    assert outcome(native.join) == outcome(join_plain)
    sizes = np.maximum(sizes, 0)
    assert native.span(offsets, sizes) == span_plain(offsets, sizes)


@given(files(), st.data())
def test_what_was_read_is_told(film, data):
    index = fragdex.index(film.data, exact=True)
    assert index.how.bytes_read <= len(film.data)
    assume(any(len(t.fragments) for t in index.tracks))
    assert index.how.mdat_bytes_read == 0


def test_need_names_what_is_missing():
    data = movie(2)
    indexer = fragdex.Indexer()
    asked = []
    while (need := indexer.need) is not None and need.start < len(data):
        asked.append(need)
        indexer.feed(data[need.start : need.stop], need.start)
    media = [ByteRange(a.stop, b.start) for a, b in itertools.pairwise(asked)]
    assert sum(gap.size for gap in media) > 0  # media was jumped over
    brute.same(indexer.finish(len(data)), fragdex.index(data, exact=True))
