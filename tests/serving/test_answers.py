"""The fast answer: which fields of a request forbid it, and that it has the bytes of the view."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.muxing.view import Scattered
from fragdex.serving.answers import LARGEST, Located, PreparedSegment, decides
from fragdex.sources import open_source
from fragdex.testing import movie

DECIDING = (b"range", b"if-match", b"if-none-match", b"if-range")
names = st.sampled_from([*DECIDING, b"host", b"accept", b"user-agent", b"x-range"])


@given(st.lists(st.tuples(names, st.binary(max_size=9))))
def test_a_request_with_such_a_field_is_read_with_care(headers):
    assert decides(headers) == any(name in DECIDING for name, _ in headers)


@pytest.mark.parametrize("name", DECIDING)
def test_each_field_alone_decides(name):
    assert decides([(b"host", b"x"), (name, b"")])


@given(st.integers(0, 40))
def test_a_segment_that_is_divided_otherwise_has_the_same_bytes(tmp_path_factory, at):
    """A store may know a range of a file as several of another one."""
    path = tmp_path_factory.getbasetemp() / "divided.mp4"
    if not path.exists():
        path.write_bytes(movie(8, samples=10, fps=5, tracks=2))

    def divided(places):
        stop = places.start + places.size
        middle = np.minimum(places.start + at, stop)
        halves = np.stack([middle - places.start, stop - middle], 1).ravel()
        starts = np.stack([places.start, middle], 1).ravel()
        ranges = Scattered(0, starts[halves > 0], halves[halves > 0])
        return Located(str(path), view.sources[0], ranges)

    package, buffer = fragdex.package(fragdex.index(path)), memoryview(bytearray(LARGEST))
    for name in (name for name in package if name.endswith(".m4s")):
        view = package[name]
        with open_source(path) as source:
            for locate in (None, divided):
                assert PreparedSegment.of(view, {}, locate).read(source, buffer) == view.read()
