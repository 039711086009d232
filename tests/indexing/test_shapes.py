"""Fragments of one shape are read together; the tables hold what was written."""

import dataclasses
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
from fragdex.fragments.findings import Findings
from fragdex.fragments.table import FragmentTable, Growing, SyncTable
from fragdex.fragments.track_info import SampleDefaults
from fragdex.indexing import fragment_batches, headers, native, positions, shapes
from fragdex.indexing.headers import code
from fragdex.indexing.native_plain import kept_plain
from fragdex.indexing.positions import MOOF
from fragdex.indexing.resolve import TrackState, regular_tables, track_tables
from fragdex.indexing.samples import MoofDecoder, samples_of
from fragdex.indexing.shapes import parsed_shape, shape_of
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


def assert_true(index, film):
    """Whether an index holds the samples that were written, and their sums."""
    for track in index.tracks:
        true = film.truth.samples.get(track.id, [])
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
def test_fragments_of_few_shapes_are_read_right_however_they_come(tmp_path, film, together, enough):
    """Mapped, read from a file, or fed with whole fragments and settled where there are enough."""
    event(f"fragments: {len(film.truth.fragments) // 8 * 8} or more")
    assert_true(fragdex.index(film.data, exact=True), film)
    path = tmp_path / "movie.mp4"
    path.write_bytes(film.data)
    assert_true(fragdex.index(path, exact=True), film)
    starts = [fragment.moof for fragment in film.truth.fragments]
    indexer, turns, at = fragdex.Indexer(), itertools.cycle(together), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fragdex.indexing.growing.AT_ONCE", 1)
        patch.setattr(fragment_batches, "ENOUGH", enough)
        while at < len(film.data):
            later = [start for start in starts if start > at]
            stop = later[min(next(turns), len(later)) - 1] if later else len(film.data)
            indexer.feed(film.data[at:stop])
            at = stop
        assert_true(indexer.finish(len(film.data)), film)


TREX = {1: SampleDefaults(10, 7, NON_SYNC), 2: SampleDefaults(10, 7, SYNC)}
needs_native = pytest.mark.skipif(
    native.compiled is None, reason="the C extension was not compiled"
)


def moofs_of(view):
    """Where the moofs of a file stand, and their sizes."""
    top = native.walk(view).top
    moofs = top[top["type"] == MOOF]
    return moofs["offset"], moofs["size"]


def rows(outcome):
    """What `by_shape` says, to be compared."""
    if outcome is None:
        return None
    plain, wide, backward = outcome
    return {t: (p.trafs.tolist(), p.points.tolist()) for t, p in plain.items()}, wide, backward


@needs_native
@given(alike())
def test_programs_read_in_passing_what_python_reads_behind_it(film):
    view = memoryview(film.data)
    at, sizes = moofs_of(view)
    true = rows(shapes.by_shape_plain(view, at, sizes, TREX, shapes.Shapes(_defaults=TREX)))
    event("plain" if true is not None else "not plain")
    known = shapes.Shapes(_defaults=TREX)
    passed = native.walk(view, learn=known.learn).shaped
    assert rows(shapes.by_shape(view, at, sizes, TREX, known, passed)) == true
    # Known from before, and looked for behind the walk.
    for shaped in (native.walk(view, shapes=known.programs).shaped, None):
        assert rows(shapes.by_shape(view, at, sizes, TREX, known, shaped)) == true


@given(alike(), alike())
def test_the_shape_of_another_file_is_taken_where_it_holds(one, other):
    """Its trafs and places are those that the moof itself has."""
    for film in (one, other):
        view = memoryview(film.data)
        for at, size in zip(*moofs_of(view), strict=True):
            moof = view[at : at + size]
            taken, own = shape_of(moof), parsed_shape(moof)
            assert (taken is None) == (own is None)
            if taken is not None:
                assert (taken.mask, taken.places, taken.trafs) == (own.mask, own.places, own.trafs)


@needs_native
@given(alike(), st.integers(0, 24), st.integers(1, 24))
def test_samples_are_written_out_as_they_are_decoded(film, first, count):
    for track in fragdex.index(film.data, exact=True).tracks:
        load = track._load
        rows = load.fragments.rows(slice(first, first + count))
        written = load.moofs.by_shape(track.id, rows, load.defaults)
        event("written out" if written is not None else "decoded")
        if written is not None:
            decoder = MoofDecoder(load.moofs._moof_bytes)
            decoded = samples_of(track.id, rows, decoder, load.defaults)
            assert written == decoded
            assert all(column.flags.writeable for column in written.columns().values())


numbers = st.integers(-9, 99) | st.sampled_from([2**31, -(2**31), 2**61 + 1, 2**63 - 1, -(2**63)])


@needs_native
@given(alike(), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99), numbers), max_size=2))
def test_what_is_settled_at_once_is_what_the_rules_say(film, changes):
    """Rows as they were read, some of them changed: regular ones give the same, others nothing."""
    view = memoryview(film.data)
    shaped = shapes.by_shape(view, *moofs_of(view), TREX, shapes.Shapes(_defaults=TREX))
    if shaped is None:
        return
    layout = positions.lay_out([native.walk(view).top])
    for track, plain in shaped[0].items():
        trafs = plain.trafs.reshape(-1, 10).copy()
        for column, row, value in changes:
            if column:
                trafs[row % len(trafs), column] = value
        plain = plain._replace(trafs=trafs.reshape(-1))
        before = TrackState(7, 70, 5, 3, -1)
        tables = Growing(FragmentTable), Growing(SyncTable)
        fast = regular_tables(plain, layout, before, *tables)
        if fast is None:
            assert changes or film.truth.samples
            event("something to look at")
            continue
        event("regular")
        findings, state, parts = Findings(), dataclasses.replace(before), plain.tables()
        where = positions.regular_positions(*parts[:2], layout)
        assert where is not None
        for table, count in zip(tables, (plain.length, plain.marks), strict=True):
            table.grow(count)
        settled = track_tables(track, *parts, where, layout, state, findings)
        assert settled == tuple(table.taken() for table in tables)
        assert state == fast
        assert findings.all() == ()


KINDS = st.sampled_from([code(name) for name in ("moof", "mdat", "styp", "sidx", "free", "moov")])


@needs_native
@given(st.lists(st.tuples(KINDS, st.integers(8, 40)), max_size=20))
def test_boxes_are_laid_out_alike_in_c_and_in_python(boxes):
    top = np.zeros(len(boxes), headers.ROW)
    top["type"], top["size"] = [k for k, _ in boxes], [n for _, n in boxes]
    top["offset"] = np.cumsum(top["size"]) - top["size"]
    top["whole"] = [k in (MOOF, code("sidx"), code("moov")) for k, _ in boxes]
    top["header"] = 8
    fast, plain = native.kept(top), kept_plain(top)
    assert [n.tolist() for n in fast[:2]] == [n.tolist() for n in plain[:2]]
    assert fast[2:] == plain[2:]
    for parts in ([top], [top[:3], top[3:]], []):
        fast, plain = positions.lay_out(parts), positions.lay_out_plain(parts)
        for name in ("moof", "start", "stop", "moof_stop", "mdat_start", "mdat_stop"):
            assert getattr(fast, name).tolist() == getattr(plain, name).tolist()
        for name in ("own_first", "own_last", "last_start", "last_stop"):
            assert getattr(fast, name).tolist() == getattr(plain, name).tolist(), name
