"""A composed object is read like any other: the right bytes of any range, or an error."""

import hashlib
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex import ByteRange
from fragdex.errors import InvalidRange, SourceChanged, SourceError, SourceNotFound
from fragdex.muxing.view import Scattered
from fragdex.service.store import open_store
from fragdex.service.store.composing import ComposingStore, Composition
from fragdex.service.store.disk import DiskStore

WHOLE = bytes(range(256)) * 40
KEY = "composed/t/one"


def column(values):
    return np.array(values, np.int64)


@st.composite
def compositions(draw):
    """A composition of WHOLE, and its bytes."""
    made_bytes, made_sizes, counts, starts, sizes, content = b"", [], [], [], [], b""
    for _ in range(draw(st.integers(0, 5))):
        piece = draw(st.binary(max_size=40))
        ranges = draw(st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 200)), max_size=5))
        made_bytes, content = made_bytes + piece, content + piece
        made_sizes.append(len(piece))
        counts.append(len(ranges))
        for start, size in ranges:
            starts.append(start)
            sizes.append(size)
            content += WHOLE[start : start + size]
    columns = [column(one) for one in (made_sizes, counts, starts, sizes)]
    return Composition("blobs/whole", len(WHOLE), made_bytes, *columns), content


@pytest.fixture(scope="module", params=["disk", "memory"])
def store(request, tmp_path_factory):
    where = "memory://" if request.param == "memory" else tmp_path_factory.mktemp("composing")
    store = ComposingStore(open_store(where))
    store.write("blobs/whole", [WHOLE])
    return store


@given(compositions(), st.data())
def test_any_range_is_that_of_the_whole(store, composed, data):
    composition, content = composed
    store.delete(KEY)
    store.write(KEY, [composition.built()])
    assert store.size(KEY) == composition.size == len(content)
    start = data.draw(st.integers(0, len(content)))
    stop = data.draw(st.integers(start, len(content)))
    assert b"".join(store.read(KEY, ByteRange(start, stop))) == content[start:stop]
    with store.source(KEY) as source:
        assert source.read(ByteRange(start, stop)) == content[start:stop]
        assert source.read_up_to(ByteRange(start, stop + 9)) == content[start : stop + 9]
    with pytest.raises(InvalidRange):
        list(store.read(KEY, ByteRange(0, len(content) + 1)))


def of_whole(**other):
    given = {"made": b"moof", "made_sizes": [4], "counts": [2], "starts": [9, 0], "sizes": [5, 7]}
    given |= {"source_size": len(WHOLE)} | other
    columns = [column(given[name]) for name in ("made_sizes", "counts", "starts", "sizes")]
    return Composition("blobs/whole", given["source_size"], given["made"], *columns)


def test_bytes_of_others_are_located_in_the_plain_object(store):
    store.delete(KEY)
    store.write(KEY, [of_whole().built()])
    places = Scattered(0, column([5, 10]), column([7, 2]))
    assert store.located(KEY, places) is None  # its record was not read yet
    data = b"".join(store.read(KEY, ByteRange(0, 16)))
    located = store.located(KEY, places)
    if store.path("blobs/whole") is None:
        assert located is None
        return
    key, known, ranges = located
    assert (key, known.size) == ("blobs/whole", len(WHOLE))
    pieces = [b"".join(store.read(key, part.range)) for part in ranges.parts()]
    assert b"".join(pieces) == data[5:12] + data[10:12]
    assert store.located(KEY, Scattered(0, column([3]), column([4]))) is None  # 1 byte is made


def test_it_is_a_file_only_as_a_copy_and_has_no_path(store):
    store.delete(KEY)
    store.write(KEY, [of_whole().built()])
    assert store.path(KEY) is None  # neither sendfile nor X-Accel could send it
    with store.local(KEY) as path:
        assert path.read_bytes() == b"moof" + WHOLE[9:14] + WHOLE[:7]
    assert not path.exists()


@given(st.data())
def test_a_damaged_record_is_refused(data):
    record = of_whole().built()
    at = data.draw(st.integers(0, len(record) - 1))
    for damaged in (
        record[:at],
        record + b"\0",
        record[:at] + bytes([record[at] ^ data.draw(st.integers(1, 255))]) + record[at + 1 :],
    ):
        with pytest.raises(SourceError, match="damaged"):
            Composition.parsed(damaged)


@pytest.mark.parametrize(
    "other",
    [
        {"starts": [9, len(WHOLE)]},
        {"starts": [-1, 0]},
        {"sizes": [5, len(WHOLE) + 1]},
        {"sizes": [5, 0]},
        {"starts": [9, (1 << 63) - 8]},
        {"sizes": [5, 1 << 62]},
        {"counts": [3]},
        {"counts": [-1, 3], "made_sizes": [4, 0]},
        {"made_sizes": [3]},
        {"made_sizes": [1 << 62, 4 - (1 << 62)], "counts": [2, 0]},
        {"source_size": 6},
        {"source_size": 1 << 60},
        {"source_size": -1},
    ],
)
def test_a_record_of_what_is_not_there_is_refused(other):
    """Its SHA-256 is right: somebody wrote it so."""
    with pytest.raises(SourceError, match="damaged"):
        Composition.parsed(of_whole(**other).built())


@pytest.mark.parametrize("line", [b"", b"[]", b"{}", b'{"source":1}', b"\xff", b"9" * 10_000])
def test_a_record_of_another_head_is_refused(line):
    body = zlib.compress(line + b"\n")
    with pytest.raises(SourceError, match="damaged"):
        Composition.parsed(b"fragdex composition 1\n" + hashlib.sha256(body).digest() + body)


def test_a_record_that_unpacks_to_gigabytes_is_refused_before(monkeypatch):
    monkeypatch.setattr("fragdex.service.store.composing.MOST_RECORD_BYTES", 1000)
    with pytest.raises(SourceError, match="damaged"):
        Composition.parsed(of_whole(made=bytes(2000), made_sizes=[2000]).built())


def test_what_is_gone_or_another_gives_no_bytes(tmp_path):
    store = ComposingStore(DiskStore(tmp_path))
    store.write("blobs/whole", [WHOLE])
    store.write(KEY, [of_whole().built()])
    everything = ByteRange(0, store.size(KEY))
    store.write("blobs/whole", [WHOLE[1:]])
    with pytest.raises(SourceChanged):
        list(store.read(KEY, everything))
    store.delete("blobs/whole")
    with pytest.raises(SourceNotFound):
        list(store.read(KEY, everything))
    with pytest.raises(SourceError, match="damaged"):
        store.write(KEY, [WHOLE])
    assert store.size(KEY) == everything.stop
    store.delete(KEY)
    with pytest.raises(SourceNotFound):
        store.size(KEY)
