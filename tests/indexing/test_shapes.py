"""Fragments of one shape are read together; the tables hold what was written."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import fragdex
from fragdex.boxes.fragments import (
    DATA_OFFSET,
    DEFAULT_BASE_IS_MOOF,
    DEFAULT_SAMPLE_DURATION,
    DEFAULT_SAMPLE_FLAGS,
    DEFAULT_SAMPLE_SIZE,
    FIRST_SAMPLE_FLAGS,
)
from fragdex.indexing import fragment_batches, native, shapes
from fragdex.indexing.headers import code
from fragdex.indexing.native_plain import fit_plain
from fragdex.testing.files import make_file
from fragdex.testing.fragments import Fragment
from fragdex.testing.tracks import NON_SYNC, SYNC, Moov, Run, Sample, Track, Traf
from laws import brute

COLUMNS = 0xF00
"""The four flags that put a column into the rows of a trun."""
DEFAULTS = DEFAULT_SAMPLE_DURATION | DEFAULT_SAMPLE_SIZE | DEFAULT_SAMPLE_FLAGS

styles = st.tuples(
    st.sampled_from([(1,), (2,), (1, 2)]),
    st.integers(1, 3),
    st.integers(0, 15).map(lambda bits: (bits << 8 & COLUMNS) | DATA_OFFSET),
    st.sampled_from([0, FIRST_SAMPLE_FLAGS]),
    st.integers(0, 1),
    st.integers(0, 7).map(lambda bits: (bits << 3 & DEFAULTS) | DEFAULT_BASE_IS_MOOF),
)


@st.composite
def alike(draw):
    """A file of fragments in a few styles, as a muxer writes them."""
    known = draw(st.lists(styles, min_size=1, max_size=3))
    sample = st.builds(
        Sample,
        size=st.integers(0, 9),
        duration=st.integers(0, 20),
        flags=st.sampled_from([SYNC, NON_SYNC]),
        offset=st.sampled_from([0, 10, 2**32 - 10]),
    )
    parts = [Moov((Track(1, trex=(10, 7, NON_SYNC)), Track(2, "audio", trex=(10, 7, SYNC))))]
    for tracks, count, flags, first, version, header in draw(
        st.lists(st.sampled_from(known), min_size=4, max_size=24)
    ):
        trafs = []
        for track in tracks:
            samples = tuple(draw(st.lists(sample, min_size=count, max_size=count)))
            run = Run(samples, flags | first, version, draw(st.sampled_from([SYNC, NON_SYNC])))
            tfdt = draw(st.sampled_from([None] + [0] * 30))
            trafs.append(Traf(track, (run,), header, tfdt=tfdt, tfdt_version=version))
        parts.append(Fragment(tuple(trafs)))
    return make_file(*parts)


def assert_true(index, made):
    """Whether an index holds the samples that were written, and their sums."""
    for track in index.tracks:
        true = made.truth.samples.get(track.id, [])
        assert brute.samples(track.samples) == brute.placed(true)
        brute.assert_fragments(track.fragments, true)
        assert [n for n, *_ in brute.sync_samples(track.sync_samples)] == [
            n for n, sample in enumerate(true) if sample.sync
        ]


@given(
    alike(),
    st.lists(st.integers(1, 9), min_size=1, max_size=8),
    st.sampled_from([1, 5, fragment_batches.ENOUGH]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_fragments_of_few_shapes_are_read_right_however_they_come(tmp_path, made, together, enough):
    """Mapped, read from a file, or fed with whole fragments and settled where there are enough."""
    event(f"fragments: {len(made.truth.fragments) // 8 * 8} or more")
    assert_true(fragdex.index(made.data, exact=True), made)
    path = tmp_path / "movie.mp4"
    path.write_bytes(made.data)
    assert_true(fragdex.index(path, exact=True), made)
    starts = [fragment.moof for fragment in made.truth.fragments]
    indexer, turns, at = fragdex.Indexer(), itertools.cycle(together), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fragdex.indexing.growing.AT_ONCE", 1)
        patch.setattr(fragment_batches, "ENOUGH", enough)
        while at < len(made.data):
            later = [start for start in starts if start > at]
            stop = later[min(next(turns), len(later)) - 1] if later else len(made.data)
            indexer.feed(made.data[at:stop])
            at = stop
        assert_true(indexer.finish(len(made.data)), made)


@given(alike())
def test_shapes_are_found_alike_in_passing_behind_it_and_in_python(made):
    view, known = memoryview(made.data), shapes.Shapes()
    whole = (met := native.walk(view, 0)).top[met.top["whole"]]
    at, sizes = whole["offset"], whole["size"]
    moofs = np.flatnonzero(whole["type"] == code("moof"))
    for moof in moofs:
        known.read(view, at[moof : moof + 1], sizes[moof : moof + 1], None)
    plain = fit_plain(view, at, sizes, known.packed)
    assert len(known.packed) == len(set(plain.which.tolist()) - {255})
    found = [native.fit(view, at, sizes, known.packed)]
    if native.compiled is not None and known.packed:
        found.append(native.walk(view, 0, shapes=known.packed).fits)
    for which, cells in found:
        assert which.tolist() == plain.which.tolist()
        assert [c.tolist() for c in cells] == [c.tolist() for c in plain.cells]


@given(
    st.binary(max_size=60),
    st.lists(st.tuples(st.integers(-9, 70), st.integers(-9, 70)), max_size=6),
    st.binary(min_size=1, max_size=9),
    st.integers(0, 8),
    st.tuples(st.integers(-1, 9), st.sampled_from([1, 2, 4, 8]), st.booleans()),
)
def test_shapes_are_looked_for_inside_the_buffer_only(data, boxes, template, known, place):
    if native.compiled is None:
        pytest.skip("the C extension was not compiled")
    mask = bytes(255 if i < known else 0 for i in range(len(template)))
    packed = ((template, mask, np.array(place, np.int64).tobytes()),)
    offsets = np.array([a for a, _ in boxes], np.int64)
    sizes = np.array([b for _, b in boxes], np.int64)

    def outcome(fit):
        try:
            which, cells = fit(data, offsets, sizes, packed)
        except ValueError:
            return "refused"
        return which.tolist(), [column.tolist() for column in cells]

    assert outcome(native.fit) == outcome(fit_plain)
