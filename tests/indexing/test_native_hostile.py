"""The C extension is called directly, with whatever arguments: it answers or refuses them.

The law is that it touches no memory but that of its arguments. test_native_sanitized.py runs this
file where each such access ends the process; here the worst ones crash.
"""

import contextlib
import gc
import mmap
import pathlib
import tempfile
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.errors import FragdexError
from fragdex.indexing import native
from fragdex.indexing.headers import DESCEND, PASSED, WHOLE
from fragdex.testing import movie
from laws import brute

C = native.compiled
pytestmark = pytest.mark.skipif(C is None, reason="the C extension was not compiled")

REFUSALS = (TypeError, ValueError, BufferError, OverflowError, MemoryError)
FAR = [2**16, 2**31, 2**32, 2**62, 2**63 - 8, 2**63 - 1, 2**63, 2**64, -1, -8, -(2**63)]
NUMBERS = st.integers(-2, 40) | st.sampled_from(FAR)
WORDS = st.integers(-2, 40) | st.sampled_from([n for n in FAR if -(2**63) <= n < 2**63])
MOVIE = movie(fragments=6)
SIMPLE = (pathlib.Path(__file__).parents[2] / "fixtures" / "faststart.mp4").read_bytes()


def int64(values):
    return np.array(list(values), np.int64)


def released(data):
    view = memoryview(data)
    view.release()
    return view


def askew(values):
    """The same numbers at an address that is not a multiple of 8."""
    return np.frombuffer(b"." + int64(values).tobytes(), np.int64, offset=1)


LISTS = st.lists(WORDS, max_size=6)
INT64 = LISTS.map(int64)
ODD = st.one_of(
    LISTS.map(askew),
    LISTS.map(lambda n: int64(n)[::2]),
    LISTS.map(lambda n: int64(n).astype(">i8")),
    LISTS.map(lambda n: int64(n).astype(np.float64)),
    LISTS.map(lambda n: int64([*n, 0])[:0]),
    LISTS.map(lambda n: int64([*n, *n]).reshape(2, -1)),
    LISTS.map(lambda n: int64(n).tobytes()),
    LISTS.map(lambda n: bytearray(int64(n).tobytes())),
    LISTS.map(lambda n: released(int64(n).tobytes())),
    st.binary(max_size=30),
    st.binary(max_size=30).map(bytearray),
    st.sampled_from([None, 0, -1, 2**70, "text", 1.5, (), ((),), [b""], b"moof" * 20]),
)
BYTES = st.binary(max_size=64) | st.sampled_from([MOVIE, MOVIE[:-1], MOVIE[700:]])
UINT8 = st.lists(st.integers(0, 255), max_size=6).map(lambda n: np.array(n, np.uint8))
CODES = st.sampled_from([b"", DESCEND, WHOLE, PASSED, b"moo", b"free" * 40])
ROW = st.lists(WORDS, min_size=6, max_size=6).map(int64)
PLACES = st.lists(st.tuples(WORDS, st.integers(-1, 9), st.integers(0, 1)), max_size=4)
NEAR = st.integers(-1, 12) | WORDS
PROGRAM = st.lists(
    st.tuples(
        *(st.integers(0, 3) | NEAR, WORDS, NEAR, st.sampled_from([4, 8]) | NEAR, NEAR),
        *(st.integers(1, 3) | NEAR, NEAR, st.sampled_from([0, 4, 8]) | NEAR, *[NEAR] * 4),
        *[WORDS] * 11,
    ),
    max_size=3,
).map(lambda trafs: int64(sum(trafs, ())).tobytes())
READABLE = [0, 0, 0, 4, 8, 2, 12, 4, -1, 0, -1, -1, 0, -1, 5, -1, 6, -1, 0, -1, 1, 3, 1]
"""A program of one traf: two samples, whose sizes stand behind 12 bytes."""
SHAPE = st.tuples(st.binary(max_size=20), st.binary(max_size=20), PROGRAM)
SAME_SIZE = st.integers(0, 40).flatmap(
    lambda n: st.tuples(
        *[st.binary(min_size=n, max_size=n)] * 2, PROGRAM | st.just(int64(READABLE).tobytes())
    )
)
SHAPES = st.lists(SHAPE | SAME_SIZE | ODD, max_size=40).map(tuple)
FEW = st.integers(1, 12) | NUMBERS
EVEN = st.sampled_from([2, 4, 8, 10, 16]) | NUMBERS
ROOM = st.sampled_from([0, 1, 16, 64, 300, 3000]).map(bytearray)

TOPS = st.lists(WORDS, max_size=12).map(lambda n: int64(n).tobytes())
CELLS = st.sampled_from([0, 7, 12, 24, 84]).map(lambda n: np.zeros(n, np.int64)) | INT64

FOUR = st.lists(WORDS, min_size=4, max_size=4).map(int64) | INT64
EDGES = st.lists(st.integers(0, 4), max_size=5).map(sorted).map(int64) | INT64
BEHIND = st.lists(BYTES | ODD, max_size=4).map(tuple)
CALLS = {
    "walk": (BYTES, NUMBERS, *[CODES] * 3, NUMBERS, CODES, SHAPES, st.none()),
    "columns": (BYTES, INT64, PLACES.map(lambda p: int64(sum(p, ())))),
    "fit": (BYTES, INT64, INT64, SHAPES, st.none() | st.just(lambda box: None)),
    "samples": (BYTES, INT64, SHAPES, st.integers(0, 3) | NUMBERS, INT64, INT64),
    "lay_out": (
        st.lists(TOPS | ODD, max_size=3).map(tuple),
        *[st.integers(0, 3) | NUMBERS] * 2,
        CODES,
    ),
    "kept": (TOPS, st.integers(0, 3) | NUMBERS),
    "settle": (
        *[st.lists(NEAR, max_size=24).map(int64)] * 3,
        *[NUMBERS] * 4,
        *[CELLS, st.integers(0, 2) | NUMBERS] * 2,
    ),
    "join": (BYTES, INT64, INT64, BYTES, NUMBERS),
    "span": (INT64, INT64),
    "moofs": (BYTES, NUMBERS, NUMBERS, EDGES, *[FOUR] * 5, UINT8, BEHIND),
    "sums": (BYTES, INT64, INT64, ROW, INT64, UINT8, UINT8),
    "join_sync": (
        INT64 | st.lists(WORDS, min_size=28, max_size=28).map(int64),
        st.booleans(),
    ),
    "chunk_starts": (BYTES, NUMBERS, NUMBERS, NUMBERS, INT64),
    "places": (INT64, INT64, INT64, NUMBERS, INT64),
    "extents": (BYTES, NUMBERS, *[INT64] * 7, NUMBERS, INT64),
    "unfilter": (BYTES, FEW, FEW, FEW, ROOM, FEW),
    "to_yuv420": (BYTES | ROOM, st.integers(-1, 3), FEW, EVEN, EVEN, *[ROOM, FEW] * 3),
}
if not hasattr(C, "to_yuv420"):  # of another processor
    del CALLS["to_yuv420"]


@pytest.mark.parametrize("name", CALLS)
@given(st.data())
def test_whatever_is_given_is_answered_or_refused(name, data):
    arguments = data.draw(st.tuples(*(kind | ODD if data else kind for kind in CALLS[name])))
    # The same object may be given twice: what is read then changes while it is written.
    twice = data.draw(st.none() | st.tuples(*[st.integers(0, len(arguments) - 1)] * 2))
    if twice is not None:
        arguments = list(arguments)
        arguments[twice[0]] = arguments[twice[1]]
    with contextlib.suppress(*REFUSALS):
        getattr(C, name)(*arguments)


@given(st.data())
def test_whatever_a_walk_by_reads_is_given(data):
    answers = data.draw(st.lists(SHAPE | SAME_SIZE | ODD, max_size=3))
    seen = []

    def learn(box):
        seen.append(box)
        return answers.pop() if answers else None

    kinds = (NUMBERS, NUMBERS, CODES, CODES, CODES, NUMBERS, NUMBERS, CODES, NUMBERS, NUMBERS)
    arguments = data.draw(
        st.tuples(*(kind | ODD for kind in kinds), SHAPES | ODD)
        | st.just((0, len(MOVIE), b"", WHOLE, PASSED, 99, 1 << 28, b"moof", 0, 0, ()))
    )
    with open_movie() as descriptor, contextlib.suppress(*REFUSALS, OSError):
        C.walk_file(descriptor, *arguments, learn)
    assert all(bytes(box) in MOVIE for box in seen)


@contextlib.contextmanager
def open_movie():
    """A descriptor of a file that holds `MOVIE`."""
    with tempfile.TemporaryFile() as file:
        file.write(MOVIE)
        file.flush()
        yield file.fileno()


def test_sizes_are_read_by_the_rule_that_accepted_them():
    size = np.zeros(9, np.uint8).tobytes()
    with pytest.raises((TypeError, ValueError)):
        C.places(size, int64([0]), int64([0]), 0, np.empty(1 << 16, np.int64))


@pytest.mark.parametrize(
    "odd",
    [
        int64([0, 0, 0, 0])[::2],
        askew([0]),
        int64([0]).astype(">i8"),
        np.zeros(1),
        np.zeros(2, np.int32),
        bytes(8),
        released(bytes(8)),
    ],
    ids=["gaps", "askew", "big-endian", "float64", "int32", "bytes", "released"],
)
def test_columns_are_refused_that_are_no_int64(odd):
    one, into = int64([0]), int64([0])
    for call in (
        lambda: C.places(odd, one, one, 0, into),
        lambda: C.places(one, odd, one, 0, into),
        lambda: C.places(one, one, odd, 0, into),
        lambda: C.places(one, one, one, 0, odd),
        lambda: C.extents(b"", 1, one, one, one, one, one, one, one, 1, odd),
        lambda: C.extents(b"", 1, one, one, one, one, one, one, odd, 1, into),
        lambda: C.join_sync(odd, True),
        lambda: C.chunk_starts(bytes(8), 8, 0, 4, odd),
        lambda: C.join(b"a", odd, one, b"", 0),
        lambda: C.join(b"a", one, odd, b"", 0),
        lambda: C.span(odd, one),
        lambda: C.span(one, odd),
        lambda: C.moofs(b"", 1, 1, odd, *[one] * 5, b"", ()),
        lambda: C.moofs(b"", 1, 1, one, *[one] * 4, odd, b"", ()),
        lambda: C.fit(b"a", odd, one, (), None),
        lambda: C.fit(b"a", one, odd, (), None),
        lambda: C.settle(odd, one, one, 0, 0, 0, 0, one, 0, one, 0),
        lambda: C.settle(one, odd, one, 0, 0, 0, 0, one, 0, one, 0),
        lambda: C.settle(one, one, odd, 0, 0, 0, 0, one, 0, one, 0),
        lambda: C.settle(one, one, one, 0, 0, 0, 0, odd, 0, one, 0),
        lambda: C.settle(one, one, one, 0, 0, 0, 0, one, 0, odd, 0),
        lambda: C.columns(b"a", odd, int64([])),
        lambda: C.columns(b"a", one, odd),
        lambda: C.sums(b"", odd, one, int64([0, -1, -1, -1, -1, 0]), one, b"0", b"0"),
    ):
        refused = "int64|contiguous|forbidden|not writable|read-only"
        with pytest.raises((TypeError, ValueError, BufferError), match=refused):
            call()


def test_starts_of_chunks_that_are_written_over_are_refused():
    start = int64([0, 4, 4, 4, 4])
    with pytest.raises(ValueError, match="chunk"):
        C.places(int64([2**40]), start, int64([2**40] * 5), 0, start)


def test_what_is_read_may_change_meanwhile():
    """Offsets move out of the buffer and back while the loops run without the interpreter."""
    buffer, n, stop = bytes(1 << 12), 1 << 16, threading.Event()
    moving, eights = np.zeros(n, np.int64), np.full(n, 8)
    columns = int64([4, 0, 0, -1, -1, 0])
    zeros = np.zeros(n, np.uint8)

    def move():
        while not stop.is_set():
            moving.fill(2**45)
            moving.fill(0)

    mover = threading.Thread(target=move)
    mover.start()
    try:
        for _ in range(20):
            for call in (
                lambda: C.join(buffer, moving, eights, b"", 0),
                lambda: C.join(buffer, np.zeros(n, np.int64), moving, b"", 0),
                lambda: C.columns(buffer, moving, int64([0, 8, 0])),
                lambda: C.fit(buffer, moving, eights, ((bytes(8), bytes(8), b""),), None),
                lambda: C.settle(
                    *(moving[: 10 * 99], moving[:600], moving[:800], 0, 0, 0, 0),
                    *(np.zeros(12 * 99, np.int64), 0, np.zeros(700, np.int64), 0),
                ),
                lambda: C.sums(buffer, moving, eights, columns, eights, zeros, zeros),
            ):
                with contextlib.suppress(ValueError):
                    call()
    finally:
        stop.set()
        mover.join()


def test_shapes_are_bytes_that_nobody_can_change():
    places = int64([0, 1, 0])
    with pytest.raises(TypeError):
        C.walk(b"", 0, b"", WHOLE, PASSED, 9, b"", ((b"a", b"a", places),), None)
    with pytest.raises(TypeError):
        C.fit(b"a", int64([0]), int64([1]), ((np.zeros(1, np.uint8), b"a", b""),), None)


def walked(learn, **changes):
    """A walk by reads over `MOVIE`."""
    arguments = {"start": 0, "stop": len(MOVIE), "max_bytes": 1 << 28, "dense": 0, "probe": 0}
    start, stop, most, dense, probe = (arguments | changes).values()
    with open_movie() as descriptor:
        return C.walk_file(
            *(descriptor, start, stop, b"", WHOLE, PASSED, 99, most, b"moof", probe, dense, ()),
            learn,
        )


def test_a_box_that_is_kept_by_who_learns_it_stays_what_it_is():
    boxes = []
    walked(lambda box: boxes.append(box) or (b"", b"", b""))
    gc.collect()
    assert len(boxes) == 6
    assert all(bytes(box) in MOVIE and bytes(box[4:8]) == b"moof" for box in boxes)


@pytest.mark.parametrize(
    "changes",
    [
        {"start": -1},
        {"start": -(2**63), "stop": 2**63 - 1},
        {"start": 9, "stop": 8},
        {"dense": 2**62, "probe": 1},
        {"dense": -1},
        {"probe": -1},
        {"max_bytes": -1},
        {"max_bytes": 2**63 - 1, "stop": 2**63 - 1, "start": 0},
    ],
    ids=str,
)
def test_impossible_stretches_of_a_file_are_refused_or_walked(changes):
    with contextlib.suppress(ValueError, MemoryError):
        walked(None, **changes)


@pytest.mark.parametrize("place", [2, 3, 4, 6])
@pytest.mark.parametrize("given", [b"free" * 17, b"moo"])
def test_box_types_that_are_too_many_or_cut_off_are_refused(place, given):
    """More than sixteen were cut off without a word, so that the last were not gone into."""
    asked = [MOVIE, 0, DESCEND, WHOLE, PASSED, 99, b"moof", (), None]
    C.walk(*asked)
    asked[place] = given
    with pytest.raises(ValueError, match="at most 16 box types of four letters"):
        C.walk(*asked)


@pytest.mark.parametrize("place", [3, 4, 5, 8])
def test_box_types_of_a_file_that_are_too_many_are_refused(place):
    with open_movie() as descriptor:
        asked = [descriptor, 0, len(MOVIE), b"", WHOLE, PASSED, 99, 99, b"moof", 0, 0, (), None]
        C.walk_file(*asked)
        asked[place] = b"free" * 16
        C.walk_file(*asked)
        asked[place] = b"free" * 17
        with pytest.raises(ValueError, match="not 68 bytes"):
            C.walk_file(*asked)


def test_integers_of_too_many_places_are_refused():
    """As many boxes as fill address space that nothing stands behind, times as many places."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    try:
        many = np.frombuffer(mmap.mmap(-1, 1 << 34, flags), np.int64)
    except OSError:
        pytest.skip("no 16 GiB of address space")
    with pytest.raises(MemoryError):
        C.columns(b"", many, many[: many.size // 3 * 3])


LONG = (b"a" * 99, b"a" * 99, b"")
READ = (bytes(20), bytes(20), int64(READABLE).tobytes())
AT_ZERO = (int64([0]), int64([20]))
REGULAR = (int64([0] * 10), int64([]), int64([0] * 8), 0, 0, 0, 0)
LEAKS = {
    "walk": lambda: C.walk(MOVIE, 0, DESCEND, WHOLE, PASSED, 99, b"moof", (LONG,), None),
    "walk outside": lambda: C.walk(MOVIE, 1 << 40, b"", b"", b"", 99, b"", (), None),
    "walk, bad shape": lambda: C.walk(b"", 0, b"", b"", b"", 9, b"", (LONG, 5), None),
    "walk, learning": lambda: C.walk(
        MOVIE, 0, b"", WHOLE, b"", 99, b"moof", (), lambda box: (bytes(len(box)),) * 2 + (b"",)
    ),
    "walk, raising": lambda: C.walk(MOVIE, 0, b"", WHOLE, b"", 99, b"moof", (), lambda box: 5),
    "fit": lambda: C.fit(bytes(20), *AT_ZERO, (READ,), None),
    "fit, learning": lambda: C.fit(bytes(20), *AT_ZERO, (), lambda box: READ),
    "fit, impossible": lambda: C.fit(bytes(20), *AT_ZERO, (LONG, (b"a", b"a", READ[2])), None),
    "fit, lengths": lambda: C.fit(b"abc", int64([0]), int64([]), (LONG,), None),
    "fit outside": lambda: C.fit(b"abc", int64([9]), int64([9]), (LONG, READ), None),
    "samples": lambda: C.samples(bytes(20), int64([20]), (READ,), 0, *[int64([0])] * 2),
    "samples, none": lambda: C.samples(bytes(20), int64([20]), (LONG,), 0, *[int64([0])] * 2),
    "samples, lengths": lambda: C.samples(b"a", int64([1]), (READ,), 0, *[int64([])] * 2),
    "samples outside": lambda: C.samples(b"a", int64([9]), (READ,), 0, *[int64([0])] * 2),
    "lay_out": lambda: C.lay_out((int64([0, 8, 1] * 2).tobytes(),) * 2, 1, 2, b""),
    "lay_out, cut off": lambda: C.lay_out((bytes(24), b"a"), 1, 2, b""),
    "lay_out, no rows": lambda: C.lay_out((bytes(24), 5), 1, 2, b""),
    "kept": lambda: C.kept(int64([0, 8, 2**56] * 2).tobytes(), 1),
    "kept, cut off": lambda: C.kept(b"a", 1),
    "simple_file": lambda: C.simple_file(SIMPLE, len(SIMPLE), None, 99, False),
    "simple_file, cut off": lambda: C.simple_file(SIMPLE, len(SIMPLE) - 1, None, 99, False),
    "simple_file, longer": lambda: C.simple_file(SIMPLE, 2**62, None, 99, False),
    "simple_file, below 0": lambda: C.simple_file(SIMPLE, -1, None, 99, False),
    "simple_file, no file": lambda: C.simple_file(-1, 99, None, 99, False),
    "simple_samples": lambda: C.simple_samples(SIMPLE, 0, 8, 0, 0),
    "simple_samples, outside": lambda: C.simple_samples(SIMPLE, 2**62, 8, 0, 1),
    "simple_samples, many": lambda: C.simple_samples(SIMPLE, 0, 99, 0, 2**62),
    "simple_samples, behind": lambda: C.simple_samples(SIMPLE, 0, 99, 5, 1),
    "simple_samples, no bytes": lambda: C.simple_samples(bytearray(99), 0, 99, 0, 1),
    "simple_file, by chunks": lambda: C.simple_file(SIMPLE, len(SIMPLE), None, 99, True),
    "simple_file, no bytes": lambda: C.simple_file(None, 99, None, 99, False),
    "settle": lambda: C.settle(*REGULAR, np.zeros(12, np.int64), 0, int64([]), 0),
    "settle, no room": lambda: C.settle(*REGULAR, np.zeros(12, np.int64), 1, int64([]), 0),
    "settle, cut off": lambda: C.settle(
        *(int64([0]), int64([]), int64([]), 0, 0, 0, 0, np.zeros(12, np.int64), 0, int64([]), 0)
    ),
    "join": lambda: C.join(b"abc", int64([0]), int64([1]), b"", 0),
    "join outside": lambda: C.join(b"abc", int64([0, 9]), int64([1, 9]), b"", 0),
    "moofs": lambda: C.moofs(b"", 1, 1, int64([0, 2]), *[int64([1, 2])] * 5, b"01", (b"a",)),
    "moofs outside": lambda: C.moofs(b"", 1, 1, int64([0, 1, 9]), *[int64([1])] * 5, b"0", ()),
    "moofs, no bytes": lambda: C.moofs(b"", 1, 1, int64([0, 1]), *[int64([1])] * 5, b"0", (5,)),
    "columns": lambda: C.columns(b"abc", int64([0]), int64([0, 1, 0])),
    "columns outside": lambda: C.columns(b"abc", int64([9]), int64([0, 1, 0])),
    "sums": lambda: C.sums(
        bytes(8), *map(int64, ([0], [2], [4, -1, -1, 0, -1, 0], [5])), b"\1", b"\1"
    ),
    "sums outside": lambda: C.sums(
        bytes(8), *map(int64, ([0, 9], [2, 9], [4, -1, -1, 0, -1, 0], [5, 5])), b"\1\1", b"\1\1"
    ),
    "places": lambda: C.places(*map(int64, ([5], [0], [9])), 0, int64([0, 0])),
    "places outside": lambda: C.places(*map(int64, ([5], [9], [9])), 0, int64([0, 0])),
    "chunk_starts": lambda: C.chunk_starts(bytes(8), 8, 0, 4, int64([0, 0])),
    "chunk_starts outside": lambda: C.chunk_starts(bytes(8), 8, 0, 5, int64([0, 0])),
    "walk_file": lambda: walked(lambda box: (bytes(len(box)), bytes(len(box)), b"")),
    "walk_file, bad shape": lambda: walked(lambda box: (b"", b"", b"" if box[0] else 7)),
    "walk_file, unreadable": lambda: C.walk_file(
        -1, 0, 9, b"", WHOLE, PASSED, 99, 99, b"moof", 0, 0, ((b"a" * 99, b"a" * 99, b""),), None
    ),
}


@pytest.mark.parametrize("name", LEAKS)
def test_nothing_is_left_behind(name):
    """Python's memory, by its own count; what malloc gave is counted by the sanitizer."""

    def rounds(count):
        for _ in range(count):
            with contextlib.suppress(*REFUSALS, OSError):
                LEAKS[name]()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        rounds(20)
        before = rounds(20)
        assert rounds(200) - before < 200 * 16
    finally:
        tracemalloc.stop()


FIXTURES = sorted((pathlib.Path(__file__).parents[2] / "fixtures").glob("*.m*"))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
def test_a_fixture_is_the_same_read_and_mapped_whole_and_cut(tmp_path, path):
    data = path.read_bytes()
    for cut in (0, 1, 9, len(data) // 2):
        part = tmp_path / "part"
        part.write_bytes(data[: len(data) - cut])
        outcomes = [outcome(what) for what in (part, part.read_bytes())]
        assert outcomes[0] == outcomes[1]


def outcome(what):
    """The fragments of an index, or the name of the error."""
    try:
        return [brute.rows(track.fragments) for track in fragdex.index(what, exact=True).tracks]
    except FragdexError as error:
        return type(error).__name__
