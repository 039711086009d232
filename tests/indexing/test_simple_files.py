"""Simple files read in one call: the index is that of the general way, or the call declines."""

import os
import pickle
import random
import re
import struct
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import fragdex
from fragdex.errors import FragdexError
from fragdex.indexing import making, native, simple_files
from fragdex.indexing.reading import Head
from fragdex.sources import open_source
from fragdex.testing import movie
from simple_inputs import FILES, SIMPLE, edited

pytestmark = pytest.mark.skipif(native.compiled is None, reason="the C extension was not compiled")


def general(data):
    return making._index_of_boxes(open_source(data), None, True, False, False, Head(), True)


def simple(data):
    """What the call read, and the index of it; either may be None."""
    source = open_source(data)
    read = simple_files.read_simple_file(source)
    return read, None if read is None else simple_files.index_of_simple(read, source)


def same_columns(one, other):
    for name, column in one.columns().items():
        assert column.dtype == getattr(other, name).dtype
        np.testing.assert_array_equal(column, getattr(other, name), err_msg=name)


def same(one, other, media=0):
    """Equal in all that an index says; `media`: bytes of media data that were read at most."""
    assert one == other
    assert one.findings == other.findings == ()
    assert one.file.size == other.file.size
    assert (one.how.method, one.how.exact, one.how.reason) == (
        other.how.method, other.how.exact, other.how.reason,
    )  # fmt: skip
    assert one.how.mdat_bytes_read <= media
    assert one.periods[0].movie == other.periods[0].movie
    for mine, theirs in zip(one.tracks, other.tracks, strict=True):
        assert (mine.info, mine.groups, mine.shift) == (theirs.info, theirs.groups, theirs.shift)
        same_columns(mine.fragments, theirs.fragments)
        same_columns(mine.sync_samples, theirs.sync_samples)
        rows = len(theirs.fragments)
        for start, stop in ((0, 1), (rows - 1, rows), (rows // 2, rows + 1), (0, rows)):
            same_columns(mine.samples_of(start, stop), theirs.samples_of(start, stop))


def outcome(data):
    """Hold both ways equal: "declined", "refused", "unknown" or "equal"."""
    read, index = simple(data)
    if read is None:
        return "declined"
    try:
        true = general(data)
    except FragdexError:
        assert index is None
        return "refused"
    if index is None:
        simple_files.remember_headers(read, true)
        _, index = simple(data)
    if index is None:
        return "unknown"
    assert (index.file, index.how) == (true.file, true.how)
    same(index, true)
    return "equal"


def test_fixtures_are_read_alike_both_ways():
    outcomes = [outcome(data) for data in FILES.values()]
    assert outcomes.count("equal") >= len(SIMPLE) - 5 > 80


@given(st.sampled_from(sorted(SIMPLE)), st.integers(0, 2**32))
def test_edited_files_are_read_alike_both_ways(name, seed):
    event(outcome(edited(SIMPLE[name], random.Random(seed))))


def with_word(data, pattern, by, word):
    """A file with another 32-bit number at `by` bytes from a pattern's start."""
    out = bytearray(data)
    struct.pack_into(">I", out, out.index(pattern) + by, word)
    return bytes(out)


@given(st.sampled_from(sorted(SIMPLE)), st.integers(0, 2**32), st.integers(0, 99))
def test_samples_of_edited_tables_are_those_of_the_tables_or_none(name, seed, first):
    """Called past what `simple_file` holds equal: no other memory is touched."""
    read = simple_files.read_simple_file(open_source(SIMPLE[name]))
    track = simple_files.SimpleTrack(*read.tracks[seed % len(read.tracks)])
    moov = bytearray(read.moov)
    chance = random.Random(seed)
    at, size = track.stbl
    for _ in range(3):
        moov[chance.randrange(at, at + size)] = chance.choice((0, 1, 255, chance.randrange(256)))
    for stop in (first, first + 1, first + chance.randrange(1 << 12)):
        samples = native.simple_samples(bytes(moov), at, size, first, stop)
        assert samples is None or samples[0].shape == (5, stop - first)


def test_what_a_file_says_of_its_rates_is_its_own():
    data = SIMPLE["faststart.mp4"]
    fragdex.index(data)
    other = with_word(data, b"btrt", 8, 123_456)
    assert outcome(other) == "equal"
    assert simple(other)[1].video.info.declared_peak_bit_rate == 123_456


def test_rates_beside_a_damaged_configuration_are_those_of_the_general_way():
    """The rates stand before what is damaged: the general way takes none of them."""
    data = SIMPLE["flash.f4v"]
    esds = data.index(b"esds")
    damaged = bytearray(data)
    damaged[data.index(b"\5", esds + 24)] = 99  # DecoderSpecificInfo
    assert outcome(bytes(damaged)) in ("equal", "unknown")


def test_the_first_index_of_a_recording_takes_the_memory_of_the_second(tmp_path):
    path = tmp_path / "long.mp4"
    path.write_bytes(movie(500, tracks=2, samples=60))
    simple_files._HEADERS.clear()
    made, peaks = [], []
    for _ in range(2):
        tracemalloc.start()
        made.append(fragdex.index(path, exact=True))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert made[0] == made[1]
    same(made[0], general(path.read_bytes()), media=made[0].how.mdat_bytes_read)
    assert peaks[0] < 1.5 * peaks[1]


def test_a_path_is_read_as_its_bytes_are(tmp_path):
    path = tmp_path / "one.mp4"
    path.write_bytes(SIMPLE["moov-last.mp4"])
    simple_files._HEADERS.clear()
    first, second = fragdex.index(path), fragdex.index(path)
    assert first == second
    assert (first.file, first.how) == (second.file, second.how)
    assert first.export("fidx") == second.export("fidx")
    assert first.how.mdat_bytes_read == 0
    assert first.how.bytes_read < 1 << 15


def test_reads_of_fragments_end_with_the_page_that_holds_their_boxes(tmp_path):
    path = tmp_path / "two tracks.mp4"
    path.write_bytes(SIMPLE["frag-by-size.mp4"])
    fragdex.index(path)
    index = fragdex.index(path)
    same(index, general(path.read_bytes()), media=4096 * len({*moofs_of(index)}))
    again = pickle.loads(pickle.dumps(index))  # noqa: S301
    same(again, general(path.read_bytes()), media=index.how.mdat_bytes_read)


def moofs_of(index):
    return [at for track in index.tracks for at in track.fragments.moof_offset.tolist()]


def spread(path, spaces):
    """A film with free space that is nowhere on the disk behind each of its fragments; its size."""
    film = movie(fragments=len(spaces), samples=2, fps=25)
    begins = [match.start() - 4 for match in re.finditer(b"moof", film)]
    fragments = [film[a:b] for a, b in pairwise([*begins, len(film)])]
    with open(path, "wb") as file:
        file.write(film[: begins[0]])
        for fragment, space in zip(fragments, spaces, strict=True):
            file.write(fragment)
            if space:
                file.write(struct.pack(">I4s", space, b"free"))
                file.seek(space - 8, os.SEEK_CUR)
        file.truncate()
    return path.stat().st_size


@pytest.mark.parametrize(
    ("between", "behind", "way", "most"),
    [
        (0, 1 << 22, simple_files.IN_EACH_PAGE, 1 << 20),
        (1 << 11, 1 << 20, simple_files.IN_EACH_PAGE, 3 << 20),
        (1 << 13, 1 << 13, simple_files.NEAR, 1 << 19),
    ],
)
def test_dense_fragments_are_read_by_chunks_or_mapped(tmp_path, between, behind, way, most):
    """After the first few; what stands behind them is not read, as far as no page has boxes."""
    path = tmp_path / "dense.mp4"
    size = spread(path, [between] * 1000 + [behind] * 9)
    with open_source(path) as source:
        read = native.compiled.simple_file(source.fileno(), source.size, None, 999, False)
        assert read == way
    assert outcome(path.read_bytes()) == "equal"
    index = fragdex.index(path)
    assert (index.how.requests == 0) == (way == simple_files.NEAR)
    assert index.how.bytes_read <= most < size
    same(index, general(path.read_bytes()), media=most)


def test_budgets_are_kept():
    data = SIMPLE["moov-last.mp4"]
    fragdex.index(data)
    with pytest.raises(fragdex.errors.BudgetExceeded):
        fragdex.index(data, max_bytes=64)


def test_an_index_whose_samples_nobody_asked_for_can_be_pickled():
    data = SIMPLE["open-gop.mp4"]
    outcome(data)
    _, index = simple(data)
    again = pickle.loads(pickle.dumps(index))  # noqa: S301
    same(again, general(data))
