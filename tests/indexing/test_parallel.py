"""A remote file read at several places at once has the index that a local one has."""

import contextlib
import functools
import random
import threading
from unittest import mock

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import fragdex
from fragdex.boxes import make_box
from fragdex.errors import BudgetExceeded, FragdexError, SourceChanged
from fragdex.indexing import remote
from fragdex.sources import Source
from fragdex.sources.base import ReadBatch
from fragdex.testing import Faults, RangeServer, movie
from fragdex.testing.files import Brand, Other, make_file
from fragdex.testing.fragments import Fragment
from fragdex.testing.tracks import NON_SYNC, SYNC, Moov, Run, Sample, Track, Traf
from laws import brute
from strategies.files import files


class Remote(Source):
    """Bytes behind a network that is not there; counts rounds."""

    def __init__(self, data, connections=16, **budget):
        super().__init__("remote", size=len(data), remote=True, **budget)
        self.connections = connections
        self.data = data
        self.rounds = 0

    def read_up_to(self, range):
        self.rounds += 1
        cut = self._spend(range)
        return bytes(self.data[cut.start : cut.stop])

    def read_many(self, ranges):
        rounds = self.rounds
        pieces = super().read_many(ranges)
        self.rounds = rounds + 1
        return pieces


@contextlib.contextmanager
def eager():
    """Passes are begun as soon and as often as can be, also in the smallest files."""
    with contextlib.ExitStack() as stack:
        for name, value in {
            "FIRST_GUESS": 8,
            "ENOUGH_KNOWN": 1,
            "FRAGMENTS_EACH": 1,
            "FROM_END": 1,
            "MOST_UNEVEN": 1 << 20,
            "WINDOWS": (16, 64),
            "LEAST_PART": 64,
            "SOME_WASTE": 1 << 12,
        }.items():
            stack.enter_context(mock.patch.object(remote, name, value))
        stack.enter_context(mock.patch.object(remote, "DENSE", 0))
        stack.enter_context(
            mock.patch.object(remote.RecentFragments, "stride", property(lambda _: 100.0))
        )
        yield


def indexed(what, **options):
    """The exact index, or the kind of error."""
    try:
        return fragdex.index(what, exact=True, **options)
    except FragdexError as error:
        return type(error)


def same(answer, true):
    if isinstance(true, type) or isinstance(answer, type):
        assert answer is true
    else:
        brute.same(answer, true)


def payloads(data):
    """(start, stop) of the media data, by size and type alone."""
    at = 0
    while at + 8 <= len(data):
        size, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        header = 16 if size == 1 else 8
        size = int.from_bytes(data[at + 8 : at + 16], "big") if size == 1 else size
        if size < header:
            return
        if kind == b"mdat":
            yield at + header, min(at + size, len(data))
        at += size


SIGNATURE = b"moof\0\0\0\x10mfhd"


@st.composite
def decoys(draw, film):
    """The same boxes, with what looks like moofs, true ones and chains of others in the mdats."""
    data = bytearray(film.data)
    fake = b"".join(
        draw(st.sampled_from([24, 40, 200, 1 << 19, 0xFFFFFFFF, 3])).to_bytes(4, "big")
        + SIGNATURE
        + draw(st.binary(max_size=12))
        for _ in range(draw(st.integers(1, 3)))
    )
    starts = [at - 4 for at in range(len(data)) if data[at : at + 4] == b"moof"]
    real = b"".join(data[at : at + 120] for at in starts[:2])
    for start, stop in payloads(film.data):
        filler = draw(st.sampled_from([b"\0", fake, real, b"\0\0\0\x08free", fake + real]))
        shift = draw(st.integers(0, 7))
        data[start:stop] = (b"\0" * shift + filler * (1 + (stop - start) // len(filler or b"x")))[
            : stop - start
        ]
    return bytes(data)


@given(files(), st.data())
def test_the_index_is_that_of_the_same_bytes_here(film, data):
    drawn = data.draw(decoys(film)) if film.data else film.data
    cut = drawn[: data.draw(st.integers(0, len(drawn)))] if data.draw(st.booleans()) else drawn
    remote = Remote(cut)
    with eager():
        answer = indexed(remote)
    same(answer, indexed(cut))
    event("passes" if remote.rounds < remote.requests else "one pass")
    # Hostile or not: nothing is read again and again.
    assert remote.bytes_read <= 4 * len(cut) + 4096
    assert remote.requests <= len(cut) + 16


def film(sizes, *, lead=(), tracks=1, mdats=1, seed=1):
    """A fragment of a second for each size in bytes; media bytes are noise."""
    rng = random.Random(seed)
    parts = [Brand(), Moov(tuple(Track(1 + n, "video", 25, trex=(1, 0, 0)) for n in range(tracks)))]
    for number, size in enumerate(sizes):
        parts += [Other(one) for one in lead]
        count = 20 + rng.randrange(10)
        samples = tuple(
            Sample(size // count // tracks, 1, NON_SYNC if n else SYNC) for n in range(count)
        )
        parts.append(
            Fragment(tuple(Traf(1 + t, (Run(samples),), tfdt=30 * number) for t in range(tracks)))
        )
        parts += [Other(make_box("mdat", data=bytes(900)))] * (mdats - 1)
    data = bytearray(make_file(*parts).data)
    for start, stop in payloads(bytes(data)):
        data[start:stop] = rng.randbytes(stop - start)
    return bytes(data)


def steady(count=400, size=30_000):
    return [size] * count


def variable(count=400, size=30_000, seed=7):
    rng = random.Random(seed)
    return [int(size * rng.lognormvariate(0, 0.7)) + 100 for _ in range(count)]


FILMS = {
    "steady": lambda: film(steady()),
    "variable": lambda: film(variable()),
    "two tracks": lambda: film(variable(), tracks=2),
    "led by styp, prft and emsg": lambda: film(
        variable(),
        lead=(
            make_box("styp", major_brand="msdh", minor_version=0, compatible_brands=["msdh"]),
            make_box("free", data=bytes(40)),
        ),
    ),
    "several mdats": lambda: film(variable(), mdats=3),
}


@functools.lru_cache(2)
def film_named(name):
    """Of FILMS; not all are kept: they are 100 MB."""
    return FILMS[name]()


@pytest.fixture(params=FILMS)
def data(request):
    return film_named(request.param)


def test_few_rounds_and_few_bytes(data):
    alone, together = Remote(data, connections=1), Remote(data)
    true, answer = indexed(alone), indexed(together)
    same(answer, true)
    assert together.rounds <= alone.rounds / 8
    assert together.requests <= 1.4 * alone.requests
    assert together.bytes_read <= alone.bytes_read + 1_000_000


def test_few_requests_where_the_server_answers_several_ranges(data):
    alone = Remote(data, connections=1)
    true = indexed(alone)
    with RangeServer(data) as server:
        index = indexed(server.url)
        same(index, true)
        assert len(server.requests) <= alone.requests / 5
        assert server.bytes_sent == index.how.bytes_read


def test_passes_are_aimed_where_the_first_fragments_agree():
    data = film_named("steady")
    alone, together = Remote(data, connections=1), Remote(data)
    same(indexed(together), indexed(alone))
    assert together.rounds <= alone.rounds / 16
    assert together.bytes_read <= alone.bytes_read + 200_000


def even(count=2400, size=8_000, seed=5):
    """As of an encoder that keeps its rate: fragments differ, and make up for one another."""
    rng = random.Random(seed)
    late = [0.0]
    for _ in range(count):
        late.append(0.7 * late[-1] + rng.gauss(0, 0.03))
    return [int(size * (1 + late[n + 1] - late[n])) for n in range(count)]


def drifting(count=2400, size=8_000, seed=5):
    """Fragments differ by chance, so that nothing tells where those far away stand."""
    rng = random.Random(seed)
    return [int(size * (1 + rng.gauss(0, 0.01))) for _ in range(count)]


@pytest.mark.parametrize("sizes", [even, drifting])
def test_long_films_take_few_rounds_and_every_stretch_its_share(sizes):
    data = film(sizes())
    alone, together = Remote(data, connections=1), Remote(data)
    same(indexed(together), indexed(alone))
    # 128 passes would take 19 rounds; they must be found first.
    assert together.rounds <= 45
    assert together.bytes_read <= 1.25 * alone.bytes_read


def numbered_anew(data, numbers):
    """The same moofs with other sequence numbers."""
    data, at = bytearray(data), 0
    for number in numbers:
        at = data.find(SIGNATURE, at) + len(SIGNATURE)
        data[at + 4 : at + 8] = number.to_bytes(4, "big")
    return bytes(data)


@pytest.mark.parametrize(
    "number",
    [
        lambda n: n if n < 8 else 0,
        lambda n: n if n < 8 else 2**32 - n,
        lambda n: n if n < 8 else 7 + (n - 7) // 3,
        lambda n: n if n < 8 else 7 + (n - 7) * 3,
        lambda n: n if n < 8 else 7 + (n - 7) * 2654435761 % 2**32,
    ],
    ids=["zero", "falling", "slow", "fast", "any"],
)
def test_numbers_that_do_not_count_moofs_cost_little(number):
    steady = film_named("steady")
    honest = Remote(steady)
    indexed(honest)
    source = Remote(numbered_anew(steady, [number(n) for n in range(400)]))
    same(indexed(source), indexed(source.data))
    assert source.requests <= 1.2 * honest.requests
    assert source.bytes_read <= honest.bytes_read + 1_000_000


def test_fragments_of_a_frame_are_read_in_windows():
    data = film(steady(3000, 150))
    source = Remote(data)
    same(indexed(source), indexed(data))
    assert source.requests < 30
    assert source.bytes_read <= 1.2 * len(data)


def test_a_source_that_reads_one_after_the_other():
    """A source of one's own need not be used by several threads."""
    threads = set()

    class Mine(Source):
        def __init__(self, data):
            super().__init__("mine", size=len(data), remote=True)
            self.data = data

        def read_up_to(self, range):
            threads.add(threading.get_ident())
            cut = self._spend(range)
            return self.data[cut.start : cut.stop]

    data = film(steady(60))
    source = Mine(data)
    same(indexed(source), indexed(data))
    assert threads == {threading.get_ident()}
    assert source.bytes_read < len(data) / 5


@pytest.fixture
def no_thread_is_left():
    """The threads of a reader end with it, whatever happened."""
    before = set(threading.enumerate())
    yield
    left = set(threading.enumerate()) - before
    assert not [one for one in left if one.name.startswith("fragdex")]


@pytest.mark.parametrize(
    "faults",
    [
        Faults(single_ranges=True),
        Faults(single_ranges=True, at_once=4),
        Faults(etag="none"),
        Faults(http_1_0=True),
        Faults(unknown_total=True),
        # as often as one request is repeated: all of them may meet the same
        Faults(status=503, after=5, times=3),
        Faults(drop_connections=True, after=5, times=3),
        Faults(short_answers=100, after=5, times=3),
        Faults(several_damaged=77),
    ],
    ids=lambda faults: str(faults)[7:60],
)
def test_servers_of_all_kinds(faults, no_thread_is_left):
    data = film_named("variable")[:5_000_000]
    with RangeServer(data, faults=faults) as server:
        same(indexed(server.url), indexed(data))


def test_an_object_that_changes_under_way(no_thread_is_left):
    data = film_named("variable")
    with RangeServer(data) as server:
        server.faults_for = lambda _: (
            setattr(server, "content", data if len(server.requests) < 9 else data[::-1]) or Faults()
        )
        with pytest.raises(SourceChanged):
            fragdex.index(server.url, exact=True)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 500), st.integers(1, 2_000_000))
def test_a_budget_is_never_passed(requests, size):
    data = film_named("variable")
    source = Remote(data, max_requests=requests, max_bytes=size)
    with contextlib.suppress(BudgetExceeded):
        same(fragdex.index(source, exact=True), indexed(data))
    assert source.requests <= requests
    assert source.bytes_read <= size


def test_a_budget_that_one_pass_keeps_is_enough(data):
    alone = Remote(data, connections=1)
    true = indexed(alone)
    tight = Remote(data, max_requests=alone.requests, max_bytes=alone.bytes_read)
    same(indexed(tight), true)


def test_more_requests_at_once_help_where_one_pass_would_not_get_there():
    data = film_named("variable")
    with RangeServer(data) as server:
        same(indexed(server.url, max_requests=100), indexed(data))


class TestHostile:
    def cost(self, data):
        source = Remote(data)
        same(indexed(source), indexed(data))
        return source

    def with_media(self, filler):
        plain = film_named("steady")
        data = bytearray(plain)
        for start, stop in payloads(plain):
            data[start:stop] = (filler * (1 + (stop - start) // len(filler)))[: stop - start]
        return bytes(data)

    @pytest.mark.parametrize(
        "filler",
        [
            (24).to_bytes(4, "big") + SIGNATURE + bytes(8),
            (1 << 20).to_bytes(4, "big") + SIGNATURE + bytes(8),
            (24).to_bytes(4, "big") + SIGNATURE + bytes(8) + b"\0\0\x10\0free",
            (24).to_bytes(4, "big") + SIGNATURE + bytes(8) + b"\x7f\0\0\0mdat",
            (24).to_bytes(4, "big") + SIGNATURE + bytes(8) + b"\0\0\0\0mdat",
            (24).to_bytes(4, "big") + SIGNATURE + bytes(8) + b"\0\0\0\x01mdat" + b"\xff" * 8,
        ],
        ids=["dense moofs", "large moofs", "far ones", "past the end", "to the end", "impossible"],
    )
    def test_media_that_looks_like_moofs_costs_little(self, filler):
        honest = Remote(film_named("steady"), connections=1)
        indexed(honest)
        source = self.cost(self.with_media(filler))
        assert source.requests <= 2 * honest.requests
        assert source.bytes_read <= 6 * honest.bytes_read + 2_000_000

    def test_a_copy_of_the_file_in_its_media_data(self):
        inner = film(steady(50, 20_000))
        data = bytearray(film([2_000_000, *steady(100)]))
        start, _ = next(payloads(bytes(data)))
        data[start : start + len(inner)] = inner
        self.cost(bytes(data))


def test_a_batch_of_nothing():
    assert ReadBatch(3).run([], int) == []


def test_what_looks_like_a_moof():
    data = movie(fragments=2)
    at = remote.moof_in(data)
    assert data[at + 4 : at + 8] == b"moof"
    assert remote.moof_in(b"\0\0\0\x01" + SIGNATURE) is None
    assert remote.moof_in(b"\0\0" + SIGNATURE) is None
