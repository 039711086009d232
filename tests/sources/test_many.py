"""Several ranges read at once: the same bytes, few requests, nothing left behind."""

import contextlib
import threading

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore

import fragdex
from fragdex.byterange import ByteRange, content_range
from fragdex.errors import (
    BudgetExceeded,
    FragdexError,
    SourceChanged,
    SourceNotFound,
    SourceUnavailable,
)
from fragdex.sources import http as http_module
from fragdex.sources import open_source
from fragdex.sources.answers import PART_HEAD, BrokenAnswer, boundary_of, parts_of
from fragdex.sources.base import ReadBatch
from fragdex.testing import Faults, RangeServer, movie

CONTENT = bytes(range(251)) * 4000
SIZE = len(CONTENT)
FORTY = [ByteRange.of(n * 20_000 + n, 100 + n) for n in range(40)]
LARGE = [ByteRange.of(n * 100_000, 90_000) for n in range(8)]


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(http_module, "BACKOFF_S", 0.001)


@pytest.fixture(autouse=True)
def no_thread_is_left():
    before = set(threading.enumerate())
    yield
    left = set(threading.enumerate()) - before
    assert not [one for one in left if one.name.startswith("fragdex")]


@contextlib.contextmanager
def opened(faults=None, **options):
    """A source that has read its first bytes, and its server, which has faults from then on."""
    with RangeServer(CONTENT) as server, open_source(server.url, **options) as source:
        source.read(ByteRange(0, 10))
        server.faults = faults or Faults()
        yield source, server


def slices(ranges):
    return [CONTENT[one.start : one.stop] for one in ranges]


def test_small_ranges_are_asked_for_together():
    with opened() as (source, server):
        assert source.read_many(FORTY) == slices(FORTY)
        assert source.requests == len(server.requests) == 1 + 3
        assert source.bytes_read == server.bytes_sent


def test_large_ranges_are_asked_for_at_once():
    with opened(Faults(latency_s=0.05)) as (source, server):
        assert source.read_many(LARGE) == slices(LARGE)
        assert source.requests == 1 + len(LARGE)
        assert 1 < server.most_at_once <= source.connections


@pytest.mark.parametrize("connections", [8, 40])
def test_connections_are_kept(connections):
    accepted = []
    ranges = [ByteRange(at * 1_500, at * 1_500 + 900) for at in range(connections)]
    faults = Faults(single_ranges=True, latency_s=0.05)
    with opened(faults, connections=connections) as (source, server):
        inner = server._server.get_request
        server._server.get_request = lambda: accepted.append(1) or inner()
        for _ in range(6):
            assert source.read_many(ranges) == slices(ranges)
    assert len(accepted) < 2 * connections


def test_one_after_the_other_where_that_is_asked_for():
    with opened(Faults(latency_s=0.01), connections=1) as (source, server):
        assert source.read_many(FORTY[:5]) == slices(FORTY[:5])
        assert server.most_at_once == 1
        assert [request.range for request in server.requests[1:]] == [r.header for r in FORTY[:5]]
        index = fragdex.index(movie(fragments=3), connections=1)
    assert index.complete


@pytest.mark.parametrize(
    "faults",
    [
        Faults(single_ranges=True),
        Faults(several_status=403),
        Faults(several_status=416),
        Faults(several_damaged=9),
        Faults(several_damaged=50_000),
    ],
    ids=["ignored", "forbidden", "refused", "without an end", "cut off"],
)
def test_a_server_that_does_not_know_several_ranges_is_asked_so_once(faults):
    with opened(faults) as (source, server):
        for _ in range(3):
            assert source.read_many(FORTY) == slices(FORTY)
        asked = [request for request in server.requests if "," in (request.range or "")]
        assert len(asked) == 1
        assert source.requests == 1 + 1 + 3 * len(FORTY)


@pytest.mark.parametrize(
    "faults",
    [
        Faults(misplaced=7),
        Faults(no_content_range=True),
        Faults(gzip=True),
    ],
    ids=["misplaced", "no place", "compressed"],
)
def test_wrong_bytes_are_never_taken(faults):
    with opened(faults) as (source, _), pytest.raises(FragdexError):
        source.read_many(FORTY)


def test_parts_at_other_places_are_asked_for_again():
    with opened(Faults(misplaced=7, after=1, times=1)) as (source, _):
        assert source.read_many(FORTY[:3]) == slices(FORTY[:3])


@pytest.mark.parametrize("ranges", [FORTY, LARGE], ids=["together", "at once"])
class TestFaultsOnTheWay:
    @pytest.mark.parametrize(
        "faults",
        [
            Faults(drop_connections=True, after=1, times=3),
            Faults(status=503, after=1, times=3),
            Faults(status=429, retry_after="0", after=1, times=3),
            Faults(short_answers=50, after=1, times=3),
        ],
        ids=["dropped", "503", "429", "short"],
    )
    def test_are_mended(self, faults, ranges):
        with opened(faults) as (source, _):
            assert source.read_many(ranges) == slices(ranges)

    def test_end_all_reads(self, ranges):
        with opened(Faults(status=404, after=2)) as (source, server):
            with pytest.raises(SourceNotFound):
                source.read_many(ranges * 2 + [ByteRange(7, 80_000)])
            assert len(server.requests) <= 1 + 2 * source.connections

    def test_are_given_up_after_bounded_tries(self, ranges):
        with opened(Faults(status=503), retries=1) as (source, server):
            with pytest.raises(SourceUnavailable, match="503"):
                source.read_many(ranges)
            # each is tried anew while others are under way, and then twice
            assert len(server.requests) <= 1 + 1 + source.connections * (5 + 2)

    def test_an_object_that_changes(self, ranges):
        with opened() as (source, server):
            server.content = CONTENT[::-1]
            with pytest.raises(SourceChanged):
                source.read_many(ranges)

    def test_a_reader_that_waits_is_woken(self, ranges):
        """One fails at once; the others would wait for a minute."""
        with opened(timeout=60.0) as (source, server):
            server.faults = Faults(single_ranges=True)
            source.read_many(ranges)
            answered = threading.Event()

            def stalled(request):
                # the first one of all is told that there is nothing; the others hear nothing
                if not answered.is_set():
                    answered.set()
                    return Faults(status=404)
                return Faults(latency_s=60.0)

            server.faults_for = stalled
            with pytest.raises(SourceNotFound):
                source.read_many(ranges)


def test_fewer_at_once_where_the_server_refuses_more():
    with opened(Faults(single_ranges=True, at_once=3, latency_s=0.005)) as (source, server):
        for _ in range(3):
            assert source.read_many(FORTY) == slices(FORTY)
        refused = sum(request.status == 503 for request in server.requests)
        assert 0 < refused < 60
        assert source._batch.width <= 4


def test_nor_is_it_asked_sooner_than_it_wants(monkeypatch):
    pauses = []
    monkeypatch.setattr(ReadBatch, "pause", lambda self, seconds: pauses.append(seconds))
    faults = Faults(single_ranges=True, status=429, retry_after="2", after=1, times=4)
    with opened(faults) as (source, _):
        assert source.read_many(LARGE) == slices(LARGE)
    assert len(pauses) == 4
    assert set(pauses) == {2.0}


class TestTheBudget:
    @pytest.mark.parametrize("ranges", [FORTY, LARGE], ids=["together", "at once"])
    def test_is_asked_for_first(self, ranges):
        total = sum(one.size for one in ranges)
        with opened(max_bytes=total + 9) as (source, server):
            with pytest.raises(BudgetExceeded):
                source.read_many(ranges)
            assert len(server.requests) == 1

    def test_holds_where_parts_need_more_than_their_bytes(self):
        total = sum(one.size for one in FORTY)
        with opened(max_bytes=total + 10) as (source, _):
            assert source.read_many(FORTY) == slices(FORTY)
            assert source.bytes_read == total + 10

    @settings(max_examples=25, deadline=None)
    @given(
        max_requests=st.integers(1, 30),
        max_bytes=st.integers(10, 2 * sum(one.size for one in LARGE)),
        single=st.booleans(),
        short=st.sampled_from([None, 20_000]),
    )
    def test_is_never_passed(self, max_requests, max_bytes, single, short):
        faults = Faults(single_ranges=single, short_answers=short)
        # Short answers use up the usual tries; a connection that was shut meanwhile needs one.
        budget = {"max_requests": max_requests, "max_bytes": max_bytes, "retries": 10}
        with opened(faults, **budget) as (source, server):
            with contextlib.suppress(BudgetExceeded):
                for _ in range(3):
                    assert source.read_many(LARGE) == slices(LARGE)
            # who was cancelled may not have reached the server
            assert len(server.requests) <= source.requests <= max_requests
            assert source.bytes_read <= max_bytes


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, SIZE + 50), st.integers(0, 70_000)).map(
            lambda pair: ByteRange.of(*pair)
        ),
        max_size=40,
    )
)
def test_ranges_of_any_kind_are_slices(ranges):
    with opened() as (source, _):
        assert source.read_many(ranges) == slices(ranges)


def test_objects_in_a_store():
    store = MemoryStore()
    store.put("a.mp4", CONTENT)
    with open_source("a.mp4", store=store) as source:
        assert source.read_many(FORTY) == slices(FORTY)
        assert source.read_many(FORTY) == slices(FORTY)
        assert source.bytes_read == 2 * sum(one.size for one in FORTY)
        store.put("a.mp4", CONTENT[::-1])
        with pytest.raises(SourceChanged):
            source.read_many(FORTY)


def test_a_budget_in_a_store():
    store = MemoryStore()
    store.put("a.mp4", CONTENT)
    with open_source("a.mp4", store=store, max_requests=30) as source:
        source.read(FORTY[0])
        with pytest.raises(BudgetExceeded):
            source.read_many(FORTY)
        assert source.requests == 1


def test_a_client_of_ones_own_serves_several_at_once():
    with httpx.Client() as client, opened(client=client) as (source, server):
        assert source.read_many(LARGE) == slices(LARGE)
        server.faults = Faults(status=404)
        with pytest.raises(SourceNotFound):
            source.read_many(LARGE)
        server.faults = Faults()
        assert source.read_many(LARGE) == slices(LARGE)


class TestMultipart:
    @given(
        st.lists(st.tuples(st.integers(0, 10**6), st.binary(min_size=1, max_size=60)), max_size=8),
        st.sampled_from([b"x", b"--", b"0" * 70]),
        st.sampled_from([b"", b"\r\n", b"a preamble\r\n"]),
    )
    def test_what_is_written_is_read(self, parts, boundary, before):
        body = bytearray(before)
        for start, data in parts:
            place = content_range(ByteRange.of(start, len(data)), None).encode()
            body += b"--" + boundary + b"\r\ncontent-Range: " + place + b"\r\n\r\n" + data + b"\r\n"
        body += b"--" + boundary + b"--\r\n"
        pieces = parts_of(bytes(body), boundary)
        assert [(part_range.range.start, data) for part_range, data in pieces] == parts

    @given(st.binary(max_size=300), st.integers(0, 300), st.binary(max_size=8))
    def test_anything_else_is_refused(self, noise, at, more):
        body = b"\r\n--b\r\nContent-Range: bytes 0-3/9\r\n\r\nabcd\r\n--b--\r\n"
        for wrong in (noise, body[:at], body[: at % len(body)] + more):
            with contextlib.suppress(BrokenAnswer):
                assert len(parts_of(wrong, b"b")) < 2 + len(wrong) // 8

    def test_a_size_that_is_claimed_is_not_believed(self):
        body = b"--b\r\nContent-Range: bytes 0-999999999999/*\r\n\r\nabcd\r\n--b--\r\n"
        with pytest.raises(BrokenAnswer):
            parts_of(body, b"b")

    def test_fields_have_an_end(self):
        body = (
            b"--b\r\nX: " + bytes(PART_HEAD) + b"\r\nContent-Range: bytes 0-0/1\r\n\r\na\r\n--b--"
        )
        with pytest.raises(BrokenAnswer):
            parts_of(body, b"b")

    @pytest.mark.parametrize(
        ("field", "boundary"),
        [
            ("multipart/byteranges; boundary=abc", b"abc"),
            ('Multipart/ByteRanges;charset=x; boundary="a b"', b"a b"),
            ("multipart/byteranges", None),
            ("video/mp4", None),
            ("multipart/byteranges; boundary=" + "x" * 71, None),
        ],
    )
    def test_boundaries(self, field, boundary):
        assert boundary_of(field) == boundary
