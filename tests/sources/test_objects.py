"""Reading from object stores, in memory and on disk, through obstore."""

import obstore
import pytest
from obstore.store import LocalStore, MemoryStore

from fragdex import sources
from fragdex.byterange import ByteRange
from fragdex.digest import md5
from fragdex.errors import (
    BudgetExceeded,
    SourceChanged,
    SourceError,
    SourceNotFound,
    SourceUnavailable,
    TruncatedInput,
)
from fragdex.sources import open_source
from fragdex.testing import Faults, RangeServer

CONTENT = bytes(range(251)) * 400
SIZE = len(CONTENT)
HEAD = ByteRange(0, 1000)


@pytest.fixture(params=["memory", "local"])
def store(request, tmp_path):
    object_store = MemoryStore() if request.param == "memory" else LocalStore(tmp_path)
    obstore.put(object_store, "a folder/movie.mp4", CONTENT)
    return object_store


@pytest.fixture
def source(store):
    with open_source("a folder/movie.mp4", store=store) as opened:
        yield opened


class TestAnObject:
    def test_nothing_is_asked_before_the_first_read(self, source):
        assert source.remote
        assert (source.size, source.etag, source.requests) == (None, None, 0)

    def test_the_first_read_tells_size_and_etag(self, source):
        assert source.read(HEAD) == CONTENT[:1000]
        assert isinstance(source.read(HEAD), bytes)
        assert source.size == SIZE
        assert source.etag
        assert (source.requests, source.bytes_read) == (2, 2000)

    def test_reads_at_the_end(self, source):
        assert source.read_up_to(ByteRange(SIZE - 5, SIZE + 5)) == CONTENT[-5:]
        assert source.read_up_to(ByteRange(SIZE, SIZE + 5)) == b""
        with pytest.raises(TruncatedInput):
            source.read(ByteRange(SIZE - 5, SIZE + 1))
        assert source.requests == 1

    def test_a_first_read_past_the_end(self, source):
        assert source.read_up_to(ByteRange(SIZE + 5, SIZE + 10)) == b""
        assert source.size == SIZE

    def test_an_empty_range_asks_nobody(self, source):
        assert source.read(ByteRange(3, 3)) == b""
        assert source.requests == 0

    def test_everything(self, source):
        assert b"".join(source.pieces(size=30_000)) == CONTENT
        assert sources.md5(source) == md5(CONTENT)

    def test_the_budget(self, source):
        source.max_requests, source.max_bytes = 1, 1000
        source.read(HEAD)
        with pytest.raises(BudgetExceeded):
            source.read(HEAD)
        source.max_requests = 5
        with pytest.raises(BudgetExceeded):
            source.read(ByteRange(0, 1))
        assert (source.requests, source.bytes_read) == (1, 1000)

    def test_nothing_works_after_close(self, source):
        source.close()
        with pytest.raises(SourceError, match="is closed"):
            source.read(HEAD)


def test_nothing_to_read(store):
    obstore.put(store, "empty", b"")
    with open_source("empty", store=store) as source:
        assert source.read_up_to(HEAD) == b""
        assert source.size == 0
        assert list(source.pieces()) == []


def test_what_is_not_there(store):
    with open_source("other.mp4", store=store) as source:
        with pytest.raises(SourceNotFound, match=r"other\.mp4"):
            source.read(HEAD)
        with pytest.raises(SourceNotFound):
            source.refresh()


def test_an_object_that_changes(store, source):
    source.read(HEAD)
    obstore.put(store, "a folder/movie.mp4", CONTENT + b"more")
    with pytest.raises(SourceChanged):
        source.read(HEAD)
    assert source.refresh() == SIZE + 4
    assert source.read(ByteRange(SIZE, SIZE + 4)) == b"more"
    obstore.put(store, "a folder/movie.mp4", b"less")
    with pytest.raises(SourceChanged):
        source.refresh()


def test_urls_name_objects_in_a_given_store(store):
    with open_source("s3://bucket/a%20folder/movie.mp4", store=store) as source:
        assert source.read(HEAD) == CONTENT[:1000]


def test_an_own_memory_store_is_empty():
    with pytest.raises(SourceNotFound), open_source("memory:///movie.mp4") as source:
        source.read(HEAD)


@pytest.mark.parametrize("url", ["s3://bucket", "s3://bucket/", "s3:///movie.mp4", "gs://"])
def test_urls_that_name_no_object(url):
    with pytest.raises(SourceError):
        open_source(url)


class TestAStoreBehindHTTP:
    """An S3 store at the range server: the requests and errors that a network brings."""

    @pytest.fixture
    def server(self):
        with RangeServer({"bucket/movie.mp4": CONTENT}) as running:
            yield running

    @pytest.fixture
    def opened(self, server, monkeypatch):
        monkeypatch.setenv("AWS_ENDPOINT", server.at("").rstrip("/"))
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
        monkeypatch.setenv("AWS_REGION", "nowhere-1")
        with open_source("s3://bucket/movie.mp4", retries=1, timeout=2.0) as source:
            yield source

    def test_reads_ranges(self, opened, server):
        assert opened.read(HEAD) == CONTENT[:1000]
        assert opened.size == SIZE
        assert server.requests[0].range == "bytes=0-999"

    def test_a_failing_server_is_given_up(self, opened, server):
        server.faults = Faults(status=503)
        with pytest.raises(SourceUnavailable):
            opened.read(HEAD)
        assert len(server.requests) <= 4

    def test_a_server_that_recovers(self, opened, server):
        server.faults = Faults(status_once=503)
        assert opened.read(HEAD) == CONTENT[:1000]

    def test_what_may_not_be_read(self, opened, server):
        server.faults = Faults(status=403)
        with pytest.raises(SourceError, match="credentials"):
            opened.read(HEAD)

    def test_an_object_that_changes(self, opened, server):
        opened.read(HEAD)
        server.content = {"bucket/movie.mp4": CONTENT[::-1]}
        with pytest.raises(SourceChanged):
            opened.read(HEAD)

    def test_a_server_that_ignores_ranges(self, opened, server):
        server.faults = Faults(ignore_range=True)
        with pytest.raises(SourceError):
            opened.read(HEAD)
