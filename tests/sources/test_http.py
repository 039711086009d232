"""Reading over HTTP from a real server, a good one and every faulty one."""

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragdex import sources
from fragdex.byterange import ByteRange
from fragdex.digest import md5
from fragdex.errors import (
    BudgetExceeded,
    RangeIgnored,
    SourceChanged,
    SourceError,
    SourceNotFound,
    SourceUnavailable,
    TruncatedInput,
)
from fragdex.sources import http as http_module
from fragdex.sources import open_source
from fragdex.testing import Faults, RangeServer

CONTENT = bytes(range(251)) * 4000  # about a megabyte, no period of a power of two
SIZE = len(CONTENT)
HEAD = ByteRange(0, 1000)


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(http_module, "BACKOFF_S", 0.001)


@pytest.fixture
def server():
    with RangeServer(CONTENT) as running:
        yield running


@pytest.fixture
def serve(server):
    """Open a source on a server with these faults."""
    opened = []

    def start(faults=None, content=CONTENT, **options):
        server.content = content
        server.faults = faults or Faults()
        opened.append(open_source(server.url, **options))
        return opened[-1]

    yield start
    for source in opened:
        source.close()


class TestAGoodServer:
    def test_nothing_is_asked_before_the_first_read(self, serve, server):
        source = serve()
        assert source.remote
        assert (source.size, source.etag, source.requests, server.requests) == (None, None, 0, [])
        assert source.view() is None

    def test_the_first_read_tells_size_and_etag(self, serve, server):
        source = serve()
        assert source.read(HEAD) == CONTENT[:1000]
        assert source.size == SIZE
        assert source.etag == f'"{md5(CONTENT)}"'
        assert (source.requests, source.bytes_read) == (1, 1000)
        assert [one.range for one in server.requests] == ["bytes=0-999"]

    def test_later_reads_carry_the_etag(self, serve, server):
        source = serve()
        source.read(HEAD)
        source.read(ByteRange(5000, 5001))
        first, second = server.requests
        assert "if-range" not in first.headers
        assert second.headers["if-range"] == source.etag
        assert {one.headers["accept-encoding"] for one in server.requests} == {"identity"}

    def test_reads_at_the_end(self, serve, server):
        source = serve()
        assert source.read_up_to(ByteRange(SIZE - 5, SIZE + 5)) == CONTENT[-5:]
        assert source.size == SIZE
        assert source.read_up_to(ByteRange(SIZE, SIZE + 5)) == b""
        with pytest.raises(TruncatedInput):
            source.read(ByteRange(SIZE - 5, SIZE + 1))
        # once the size is known, nobody is asked for what is not there
        assert len(server.requests) == 1

    def test_reads_past_the_end_learn_the_size(self, serve):
        source = serve()
        assert source.read_up_to(ByteRange(SIZE + 10, SIZE + 20)) == b""
        assert source.size == SIZE
        assert source.read(HEAD) == CONTENT[:1000]

    def test_an_exact_read_past_the_end_is_refused(self, serve):
        with pytest.raises(TruncatedInput) as raised:
            serve().read(ByteRange(SIZE - 5, SIZE + 5))
        assert raised.value.offset == SIZE

    def test_nothing_to_read(self, serve):
        source = serve(content=b"")
        assert source.read_up_to(HEAD) == b""
        assert source.size == 0
        assert list(source.pieces()) == []

    def test_an_empty_range_asks_nobody(self, serve, server):
        assert serve().read(ByteRange(5, 5)) == b""
        assert server.requests == []

    def test_the_connection_is_kept(self, server, monkeypatch):
        accepted = []
        inner = server._server.get_request
        monkeypatch.setattr(server._server, "get_request", lambda: accepted.append(1) or inner())
        with open_source(server.url) as source:
            for start in range(0, 50_000, 10_000):
                source.read(ByteRange.of(start, 100))
        assert len(accepted) == 1

    def test_everything_in_one_answer(self, serve, server):
        source = serve()
        assert b"".join(source.pieces()) == CONTENT
        assert source.size == SIZE
        assert [one.range for one in server.requests] == [None]
        assert source.bytes_read == SIZE

    def test_part_of_it_in_one_answer(self, serve, server):
        source = serve()
        assert b"".join(source.pieces(ByteRange(10, 500_000))) == CONTENT[10:500_000]
        assert source.requests == 1
        with pytest.raises(TruncatedInput):
            list(source.pieces(ByteRange(10, SIZE + 1)))

    def test_part_of_it_past_an_unknown_end(self, serve):
        with pytest.raises(TruncatedInput):
            list(serve().pieces(ByteRange(10, SIZE + 1)))

    def test_md5(self, server):
        assert sources.md5(server.url) == md5(CONTENT)
        assert sources.md5(server.url, [ByteRange(5, 9)]) == md5(CONTENT[5:9])

    def test_headers_and_client_of_ones_own(self, server):
        with httpx.Client(headers={"X-One": "1"}, auth=("me", "secret")) as client:
            with open_source(server.url, client=client, headers={"X-Two": "2"}) as source:
                source.read(HEAD)
            assert not client.is_closed
        asked = server.requests[0].headers
        assert (asked["x-one"], asked["x-two"]) == ("1", "2")
        assert asked["authorization"].startswith("Basic ")

    def test_secrets_stay_out_of_the_name(self, server):
        url = server.url.replace("//", "//me:secret@") + "?signature=hidden"
        with open_source(url) as source:
            assert source.read(HEAD) == CONTENT[:1000]
            assert source.name == server.url

    def test_nothing_works_after_close(self, serve):
        source = serve()
        source.close()
        source.close()
        with pytest.raises(SourceError, match="is closed"):
            source.read(HEAD)
        with pytest.raises(SourceError, match="is closed"):
            list(source.pieces())

    @settings(max_examples=30)
    @given(asked=st.lists(st.tuples(st.integers(0, 1200), st.integers(0, 1200)), max_size=5))
    def test_reads_are_slices(self, asked):
        content = CONTENT[:1000]
        with RangeServer(content) as server, open_source(server.url) as source:
            for start, size in asked:
                assert source.read_up_to(ByteRange.of(start, size)) == content[start : start + size]


class TestTheBudget:
    def test_of_requests(self, serve, server):
        source = serve(max_requests=2)
        source.read(HEAD)
        source.read(HEAD)
        with pytest.raises(BudgetExceeded):
            source.read(HEAD)
        assert len(server.requests) == source.requests == 2

    def test_of_bytes(self, serve, server):
        source = serve(max_bytes=1500)
        source.read(HEAD)
        with pytest.raises(BudgetExceeded):
            source.read(ByteRange(0, 501))
        with pytest.raises(BudgetExceeded):
            list(source.pieces(ByteRange(0, 501)))
        assert len(server.requests) == 1
        assert source.read(ByteRange(0, 500)) == CONTENT[:500]

    def test_of_bytes_holds_for_everything_of_unknown_length(self, serve, server):
        source = serve(max_bytes=SIZE - 1)
        with pytest.raises(BudgetExceeded):
            list(source.pieces())
        assert source.bytes_read == 0
        server.faults = Faults(http_1_0=True)
        other = serve(Faults(http_1_0=True), max_bytes=100_000)
        with pytest.raises(BudgetExceeded):
            list(other.pieces())
        assert other.bytes_read <= 100_000

    def test_counts_what_is_tried_again(self, serve, server):
        source = serve(Faults(status=503), max_requests=2)
        with pytest.raises(BudgetExceeded):
            source.read(HEAD)
        assert len(server.requests) == source.requests == 2

    def test_counts_redirects(self, serve, server):
        source = serve(Faults(redirects=2), max_requests=2)
        with pytest.raises(BudgetExceeded):
            source.read(HEAD)
        assert len(server.requests) == 2


class TestServersThatIgnoreRanges:
    def test_are_left_at_their_first_answer(self, serve, server):
        content = bytes(64_000_000)
        source = serve(Faults(ignore_range=True), content=content)
        with pytest.raises(RangeIgnored, match="64000000 bytes"):
            source.read(HEAD)
        # the body was not read: what left the server are its own buffers
        assert server.bytes_sent < 32_000_000
        assert source.bytes_read == 0
        assert source.requests == 1

    def test_are_taken_where_everything_is_small(self, serve):
        source = serve(Faults(ignore_range=True), content=b"abcdef")
        assert source.read_up_to(ByteRange(2, 100)) == b"cdef"
        assert source.size == 6
        assert source.read(ByteRange(0, 6)) == b"abcdef"
        assert source.requests == 2
        # and kept, since it could not be asked for in part
        assert source.read(ByteRange(1, 2)) == b"b"
        assert source.requests == 2

    def test_are_refused_where_a_small_part_is_wanted_first(self, serve):
        with pytest.raises(RangeIgnored):
            serve(Faults(ignore_range=True), content=b"abcdef").read(ByteRange(1, 2))

    def test_are_taken_where_the_range_lies_behind_everything(self, serve):
        source = serve(Faults(ignore_range=True), content=b"abcdef")
        assert source.read_up_to(ByteRange(100, 200)) == b""
        assert source.size == 6

    def test_are_refused_where_no_length_is_told(self, serve):
        with pytest.raises(RangeIgnored):
            serve(Faults(ignore_range=True, http_1_0=True), content=b"abcdef").read_up_to(HEAD)

    def test_can_be_hashed(self, serve):
        assert sources.md5(serve(Faults(ignore_range=True))) == md5(CONTENT)

    def test_cannot_be_gone_on_with(self, serve):
        source = serve(Faults(ignore_range=True, short_answers=500_000, etag="none"))
        with pytest.raises(RangeIgnored):
            list(source.pieces())


class TestObjectsThatChange:
    def test_another_etag(self, serve, server):
        source = serve(Faults(changing_etag=True))
        source.read(HEAD)
        with pytest.raises(SourceChanged, match="ETag"):
            source.read(HEAD)

    def test_another_length(self, serve):
        source = serve(Faults(changing_length=True, etag="none"))
        source.read(HEAD)
        with pytest.raises(SourceChanged, match=f"expected {SIZE} bytes, found {SIZE + 1}"):
            source.read(HEAD)

    def test_other_content_of_the_same_length(self, serve, server):
        source = serve()
        source.read(HEAD)
        server.content = CONTENT[::-1]
        with pytest.raises(SourceChanged):
            source.read(HEAD)
        # the new content was never taken
        assert source.bytes_read == 1000

    @pytest.mark.parametrize("etag", ["strong", "weak", "none"])
    def test_shorter_by_now(self, serve, server, etag):
        source = serve(Faults(etag=etag))
        source.read(HEAD)
        server.content = CONTENT[:100]
        with pytest.raises(SourceChanged):
            source.read(ByteRange(5000, 6000))

    def test_gone_by_now(self, serve, server):
        source = serve()
        source.read(HEAD)
        server.content = {"elsewhere": b""}
        with pytest.raises(SourceNotFound):
            source.read(HEAD)

    def test_a_change_in_the_middle_of_an_answer(self, serve, server):
        pieces = serve(Faults(short_answers=100_000)).pieces()
        next(pieces)
        server.content = CONTENT[::-1]
        with pytest.raises(SourceChanged):
            list(pieces)

    def test_refresh_takes_a_longer_one(self, serve, server):
        source = serve()
        source.read(HEAD)
        server.content = CONTENT + b"more"
        assert source.refresh() == SIZE + 4
        assert source.read(ByteRange(SIZE, SIZE + 4)) == b"more"

    def test_refresh_refuses_a_shorter_one(self, serve, server):
        source = serve()
        source.read(HEAD)
        server.content = CONTENT[:-1]
        with pytest.raises(SourceChanged):
            source.refresh()
        server.content = {"elsewhere": b""}
        with pytest.raises(SourceNotFound):
            source.refresh()
        server.content = CONTENT
        assert source.read(HEAD) == CONTENT[:1000]


class TestTagsAndTotals:
    @pytest.mark.parametrize("etag", ["weak", "none"])
    def test_no_strong_etag_is_no_obstacle(self, serve, server, etag):
        source = serve(Faults(etag=etag))
        source.read(HEAD)
        assert source.read(ByteRange(5000, 6000)) == CONTENT[5000:6000]
        assert "if-range" not in server.requests[1].headers

    def test_a_weak_etag_is_compared(self, serve, server):
        source = serve(Faults(etag="weak"))
        source.read(HEAD)
        server.content = CONTENT[::-1]
        with pytest.raises(SourceChanged):
            source.read(HEAD)

    def test_an_unknown_total_is_found_at_the_end(self, serve):
        source = serve(Faults(unknown_total=True))
        assert source.read(HEAD) == CONTENT[:1000]
        assert source.size is None
        assert source.read_up_to(ByteRange(SIZE - 10, SIZE + 10)) == CONTENT[-10:]
        assert source.size == SIZE

    def test_an_unknown_total_and_a_range_past_the_end(self, serve):
        source = serve(Faults(unknown_total=True))
        assert source.read_up_to(ByteRange(SIZE + 5, SIZE + 10)) == b""
        assert source.size == SIZE
        assert source.requests == 2

    def test_old_servers(self, serve):
        source = serve(Faults(http_1_0=True))
        assert source.read(HEAD) == CONTENT[:1000]
        assert source.read(ByteRange(5000, 6000)) == CONTENT[5000:6000]
        assert source.size == SIZE

    def test_everything_from_an_old_server(self, serve):
        source = serve(Faults(http_1_0=True))
        assert b"".join(source.pieces()) == CONTENT
        assert source.size == SIZE


class TestServersThatFailForAWhile:
    @pytest.mark.parametrize("status", [500, 502, 503, 504, 408, 429])
    def test_a_status(self, serve, server, status):
        source = serve(Faults(status_once=status))
        assert source.read(HEAD) == CONTENT[:1000]
        assert [one.status for one in server.requests] == [status, 206]
        assert source.requests == 2

    def test_a_dropped_connection(self, serve, server):
        source = serve(Faults(drop_connections=True, times=2))
        assert source.read(HEAD) == CONTENT[:1000]
        assert source.requests == 3

    def test_a_kept_connection_that_is_dropped(self, serve, server):
        source = serve(Faults(drop_connections=True, after=1, times=1))
        assert source.read(HEAD) == source.read(HEAD) == CONTENT[:1000]

    def test_a_short_answer_is_gone_on_with(self, serve, server):
        source = serve(Faults(short_answers=300, times=2))
        assert source.read(HEAD) == CONTENT[:1000]
        assert [one.range for one in server.requests] == [
            "bytes=0-999",
            "bytes=300-999",
            "bytes=600-999",
        ]
        assert source.bytes_read == 1000

    def test_short_answers_that_make_progress_are_no_failures(self, serve):
        source = serve(Faults(short_answers=100_000), retries=0)
        assert source.read(ByteRange(0, SIZE)) == CONTENT
        assert source.requests == -(-SIZE // 100_000)

    def test_everything_in_short_answers(self, serve, server):
        source = serve(Faults(short_answers=400_000))
        assert b"".join(source.pieces()) == CONTENT
        assert [one.range for one in server.requests] == [None, "bytes=400000-", "bytes=800000-"]

    def test_honest_partial_answers(self, serve, server):
        source = serve(Faults(partial_answers=100_000))
        assert source.read(ByteRange(0, 250_000)) == CONTENT[:250_000]
        assert source.requests == 3

    def test_a_short_answer_of_an_old_server(self, serve):
        # nothing but Content-Range tells that bytes are missing
        source = serve(Faults(http_1_0=True, short_answers=300, times=1))
        assert source.read(HEAD) == CONTENT[:1000]

    def test_retry_after(self, serve):
        source = serve(Faults(status_once=503, retry_after="0"))
        assert source.read(HEAD) == CONTENT[:1000]
        source = serve(Faults(status=503, retry_after="3600"))
        with pytest.raises(SourceUnavailable, match="retry in 3600 s"):
            source.read(HEAD)
        assert source.requests == 1

    def test_a_late_answer(self, serve, server):
        source = serve(Faults(latency_s=30.0, times=1), timeout=1.0)
        assert source.read(HEAD) == CONTENT[:1000]
        assert source.requests == 2

    def test_latency_within_the_limit(self, serve):
        assert serve(Faults(latency_s=0.05)).read(HEAD) == CONTENT[:1000]


class TestServersThatFail:
    def test_are_given_up_after_bounded_tries(self, serve, server):
        source = serve(Faults(status=503), retries=2)
        with pytest.raises(SourceUnavailable, match=r"HTTP status 503.*gave up after 3 tries"):
            source.read(HEAD)
        assert len(server.requests) == 3

    def test_or_at_once(self, serve, server):
        with pytest.raises(SourceUnavailable):
            serve(Faults(drop_connections=True), retries=0).read(HEAD)
        assert len(server.requests) == 1

    def test_short_answers_without_progress(self, serve, server):
        source = serve(Faults(short_answers=10))
        with pytest.raises(SourceUnavailable, match="gave up after 4 tries") as raised:
            source.read(HEAD)
        assert len(server.requests) == 4
        assert raised.value.offset == 40

    def test_partial_answers_without_progress(self, serve):
        with pytest.raises(SourceUnavailable, match="sends less"):
            serve(Faults(partial_answers=10)).read(HEAD)

    def test_a_slow_drip_does_not_hold_the_reader(self, serve, server):
        # each piece comes in time, all of them never would
        source = serve(Faults(drip=(10, 0.05)), timeout=1.0, retries=1)
        with pytest.raises(SourceUnavailable, match="fewer than"):
            source.read(ByteRange(0, SIZE))
        assert source.requests == 2

    def test_a_drip_that_stops(self, serve):
        source = serve(Faults(drip=(10, 30.0)), timeout=0.2, retries=0)
        with pytest.raises(SourceUnavailable, match=r"no answer in 0\.2 s"):
            source.read(HEAD)

    def test_nobody_there(self):
        with RangeServer(CONTENT) as server:
            url = server.url
        with open_source(url, retries=1) as source:
            with pytest.raises(SourceUnavailable, match="connection failed"):
                source.read(HEAD)
            assert source.requests == 2

    @pytest.mark.parametrize("status", [404, 410])
    def test_nothing_there(self, serve, server, status):
        with pytest.raises(SourceNotFound, match=str(status)):
            serve(Faults(status=status)).read(HEAD)
        assert len(server.requests) == 1

    @pytest.mark.parametrize(
        ("status", "advice"), [(401, "credentials"), (403, "forbidden"), (400, ""), (204, "")]
    )
    def test_what_no_second_try_would_mend(self, serve, server, status, advice):
        with pytest.raises(SourceError, match=f"{status}.*{advice}"):
            serve(Faults(status=status)).read(HEAD)
        assert len(server.requests) == 1

    def test_a_refused_range_that_lies_inside(self, serve, server):
        source = serve()
        source.read(HEAD)
        server.faults = Faults(status=416)
        with pytest.raises(SourceError, match="refuses a valid range"):
            source.read(ByteRange(5000, 6000))

    def test_other_bytes_than_asked_for(self, serve):
        with pytest.raises(SourceError, match="other bytes"):
            serve(Faults(misplaced=7)).read(HEAD)

    def test_bytes_that_are_not_named(self, serve):
        with pytest.raises(SourceError, match="which bytes"):
            serve(Faults(no_content_range=True)).read(HEAD)

    def test_compressed_answers(self, serve, server):
        with pytest.raises(SourceError, match="compressed"):
            serve(Faults(gzip=True)).read(HEAD)
        assert server.requests[0].headers["accept-encoding"] == "identity"

    @pytest.mark.parametrize(
        "url", ["http://", "http://[::1", "http://a b/", "https://x:99999999/"]
    )
    def test_what_is_no_url(self, url):
        with pytest.raises(SourceError), open_source(url, retries=0) as source:
            source.read(HEAD)


class TestRedirects:
    def test_are_followed_once_and_remembered(self, serve, server):
        source = serve(Faults(redirects=2))
        assert source.read(HEAD) == CONTENT[:1000]
        assert source.requests == 3
        assert source.read(ByteRange(5000, 6000)) == CONTENT[5000:6000]
        assert source.requests == 4
        assert [one.range for one in server.requests] == ["bytes=0-999"] * 3 + ["bytes=5000-5999"]

    def test_are_asked_for_anew_when_their_end_is_gone(self, serve, server):
        source = serve(Faults(redirects=1))
        source.read(HEAD)
        server.faults = Faults(status=403, after=2, times=1)
        assert source.read(HEAD) == CONTENT[:1000]
        assert [one.status for one in server.requests] == [302, 206, 403, 206]

    def test_are_not_followed_for_ever(self, serve):
        source = serve(Faults(redirects=10**9))
        with pytest.raises(SourceError, match="redirected too often"):
            source.read(HEAD)
        assert source.requests == 11

    def test_to_elsewhere_carry_no_credentials(self, server):
        with RangeServer(CONTENT) as elsewhere:
            # another port is another origin
            server.faults = Faults(redirects=1, redirect_to=elsewhere.url)
            with (
                httpx.Client(auth=("me", "secret")) as client,
                open_source(server.url, client=client) as source,
            ):
                source.read(HEAD)
                source.read(HEAD)
            assert "authorization" in server.requests[0].headers
            assert len(elsewhere.requests) == 2
            assert not any("authorization" in one.headers for one in elsewhere.requests)

    def test_within_one_server_keep_them(self, serve, server):
        source = serve(Faults(redirects=1), headers={"Authorization": "Bearer x"})
        source.read(HEAD)
        source.read(HEAD)
        assert {one.headers["authorization"] for one in server.requests} == {"Bearer x"}

    def test_to_another_protocol_are_refused(self, serve):
        with pytest.raises(SourceError):
            serve(Faults(redirects=1, redirect_to="file:///etc/hosts")).read(HEAD)
