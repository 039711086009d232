"""RFC 9110: what GET and HEAD of stored bytes answer, over a real socket."""

import base64
import email.parser
import email.policy
import hashlib
import os
import socket
import time

import httpx
import numpy as np
import pytest

from fragdex.errors import SourceUnavailable
from fragdex.service.records.identifiers import md5_text
from fragdex.service.store import open_store
from fragdex.service.store.composing import Composition
from fragdex.service.web import ranges
from fragdex.service.web.ranges import MAX_PARTS
from service.serving import await_housekeeping, serving
from service.web.conftest import BYTES, KEY, router

PATH = "/api/v1/test/bytes"
ETAG = f'"{md5_text(hashlib.md5(BYTES).digest())}"'
SIZE = len(BYTES)


COMPOSED = "composed/test/bytes"
# for each block: its made bytes, how many ranges follow, and how large each is
BLOCKS = ((0, 1, 900), (64, 1, 300_000), (1, 1, 20_000), (0, 400, 500), (8, 3, 100_000), (9, 0, 0))


def composed_in(store):
    """Write the bytes as made ones and ranges of another object, between which others lie."""
    whole, made, starts, sizes, at = bytearray(), b"", [], [], 0
    for made_size, count, size in BLOCKS:
        made += BYTES[at : at + made_size]
        at += made_size
        for _ in range(count):
            whole += b"-" * 13
            starts.append(len(whole))
            sizes.append(size)
            whole += BYTES[at : at + size]
            at += size
    counts = [count for _, count, _ in BLOCKS]
    starts.append(len(whole))
    sizes.append(SIZE - at)
    counts[-1] += 1
    store.write("blobs/test/whole", [bytes(whole) + BYTES[at:]])
    columns = ([made_size for made_size, _, _ in BLOCKS], counts, starts, sizes)
    record = Composition(
        "blobs/test/whole", len(whole) + SIZE - at, made,
        *(np.array(column, np.int64) for column in columns),
    )  # fmt: skip
    store.write(COMPOSED, [record.built()])


@pytest.fixture(scope="module", params=["disk", "objects", "composed"])
def served(request, tmp_path_factory):
    """The same bytes on the disk, in an object store, and in pieces of another file."""
    with serving(tmp_path_factory.mktemp("ranges"), router) as served:
        if request.param == "objects":
            store = open_store("memory://")
            object.__setattr__(served.context, "store", store)
        if request.param == "composed":
            composed_in(served.context.store)
            served.app.state.key_of_bytes = COMPOSED
        else:
            served.context.store.write(KEY, [BYTES])
        yield served


@pytest.fixture
def client(served):
    return served.client


def get(client, **headers):
    return client.get(PATH, headers={k.replace("_", "-"): v for k, v in headers.items()})


def test_GET_is_everything(client):
    answer = get(client)
    assert answer.status_code == 200
    assert answer.content == BYTES
    assert answer.headers["etag"] == ETAG
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["content-type"] == "video/mp4"
    digest = base64.b64encode(hashlib.sha256(BYTES).digest()).decode()
    assert answer.headers["repr-digest"] == f"sha-256=:{digest}:"


@pytest.mark.parametrize(
    ("asked", "start", "stop"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=100-", 100, SIZE),
        ("bytes=-7", SIZE - 7, SIZE),
        ("bytes=5-99999999999", 5, SIZE),
        ("BYTES=1000000-1262143", 1_000_000, 1_262_144),
        ("bytes=1000-2000000", 1000, 2_000_001),
    ],
)
def test_GET_of_a_range_is_206(client, asked, start, stop):
    answer = get(client, Range=asked)
    assert answer.status_code == 206
    assert answer.headers["content-range"] == f"bytes {start}-{stop - 1}/{SIZE}"
    assert answer.content == BYTES[start:stop]
    assert answer.headers["etag"] == ETAG


def test_what_the_system_has_not_in_memory_is_read_for_the_answer(served, client):
    composed = "key_of_bytes" in served.app.state._state
    path = served.context.store.path("blobs/test/whole" if composed else KEY)
    if path is None:
        pytest.skip("no file")
    with path.open("rb") as file:
        os.fsync(file.fileno())
        for at in (0, SIZE // 2):
            os.posix_fadvise(file.fileno(), at, SIZE // 4, os.POSIX_FADV_DONTNEED)
            assert get(client).content == BYTES
            assert get(client, Range=f"bytes={at}-{SIZE - 2}").content == BYTES[at : SIZE - 1]


def edges():
    """Where blocks and ranges of the composed bytes begin."""
    at, places = 0, []
    for made_size, count, size in BLOCKS:
        places += [at, at + made_size]
        at += made_size + count * size
    return sorted({place for place in (*places, at) if 0 < place < SIZE})


def test_GET_of_ranges_about_all_edges(client):
    for edge in edges():
        for start, stop in ((edge - 1, edge), (edge, edge + 1), (edge - 1, edge + 70_000)):
            stop = min(stop, SIZE)
            answer = get(client, Range=f"bytes={start}-{stop - 1}")
            assert answer.content == BYTES[start:stop], (start, stop)


def test_what_a_file_has_is_sent_by_the_kernel(served, client, monkeypatch):
    """Composed or not, where it is in memory: no thread reads it."""
    if served.context.store.path(KEY) is None and "key_of_bytes" not in served.app.state._state:
        pytest.skip("no file")
    assert get(client).content == BYTES

    async def never(*_):
        pytest.fail("a thread reads what is in memory")

    monkeypatch.setattr(ranges, "run_at_store", never)
    for asked in ("bytes=0-99", "bytes=100-300999", "bytes=700000-1700000", "bytes=5-9,800000-"):
        start = int(asked[6:].partition("-")[0])
        answer = get(client, Range=asked)
        assert answer.status_code == 206
        assert "," in asked or answer.content == BYTES[start:][: len(answer.content)]


@pytest.mark.parametrize("asked", ["bytes=9-3", "lines=1-2", "bytes", "bytes=a-b", "bytes=-"])
def test_GET_of_a_range_that_cannot_be_read_is_200(client, asked):
    answer = get(client, Range=asked)
    assert (answer.status_code, len(answer.content)) == (200, SIZE)


@pytest.mark.parametrize("asked", [f"bytes={SIZE}-", "bytes=-0", f"bytes={SIZE}-{SIZE + 9}"])
def test_GET_of_a_range_past_the_end_is_416(client, asked):
    answer = get(client, Range=asked)
    assert answer.status_code == 416
    assert answer.headers["content-range"] == f"bytes */{SIZE}"
    assert answer.headers["content-type"] == "application/problem+json"


def test_GET_of_several_ranges_is_multipart(client):
    answer = get(client, Range="bytes=0-9, 1000000-1600000,-5")
    assert answer.status_code == 206
    assert "content-range" not in answer.headers
    head = f"Content-Type: {answer.headers['content-type']}\r\n\r\n".encode()
    parser = email.parser.BytesParser(policy=email.policy.HTTP)
    parts = list(parser.parsebytes(head + answer.content).iter_parts())
    assert [part["content-range"] for part in parts] == [
        f"bytes 0-9/{SIZE}",
        f"bytes 1000000-1600000/{SIZE}",
        f"bytes {SIZE - 5}-{SIZE - 1}/{SIZE}",
    ]
    assert all(part["content-type"] == "video/mp4" for part in parts)
    boundary = answer.headers["content-type"].partition("boundary=")[2]
    bodies = answer.content.split(f"\r\n--{boundary}".encode())
    assert [body.partition(b"\r\n\r\n")[2] for body in bodies[1:-1]] == [
        BYTES[:10],
        BYTES[1_000_000:1_600_001],
        BYTES[-5:],
    ]
    assert int(answer.headers["content-length"]) == len(answer.content)


def test_GET_of_too_many_ranges_is_200(client):
    asked = ",".join(f"{n * 10}-{n * 10 + 1}" for n in range(MAX_PARTS + 1))
    assert get(client, Range=f"bytes={asked}").status_code == 200
    assert get(client, Range=f"bytes={asked.rpartition(',')[0]}").status_code == 206


@pytest.mark.parametrize(
    ("condition", "status"),
    [(ETAG, 206), (f"W/{ETAG}", 200), ('"other"', 200), ("Sat, 21 Nov 2026 05:00:00 GMT", 200)],
)
def test_If_Range_is_compared_strongly(client, condition, status):
    assert get(client, Range="bytes=0-9", If_Range=condition).status_code == status


@pytest.mark.parametrize(
    ("condition", "status"), [(ETAG, 304), (f'"x", W/{ETAG}', 304), ("*", 304), ('"x"', 200)]
)
def test_If_None_Match(client, condition, status):
    answer = get(client, If_None_Match=condition)
    assert answer.status_code == status
    assert answer.headers["etag"] == ETAG
    if status == 304:
        assert answer.content == b""


def test_HEAD_ignores_Range(client):
    answer = client.head(PATH, headers={"Range": "bytes=0-9"})
    assert answer.status_code == 200
    assert answer.headers["content-length"] == str(SIZE)
    assert answer.content == b""


def test_bytes_that_are_gone_are_404(tmp_path):
    with serving(tmp_path, router) as served:
        for asked in ({}, {"Range": "bytes=0-9"}):
            assert served.client.get(PATH, headers=asked).status_code == 404


def test_behind_nginx_a_local_file_is_named_and_not_sent(tmp_path):
    with serving(tmp_path, router, x_accel_prefix="/inside/") as served:
        served.context.store.write(KEY, [BYTES])
        answer = served.client.get(PATH, headers={"Range": "bytes=0-9"})
        named = answer.headers["x-accel-redirect"].removeprefix("/inside/")
        assert (served.context.settings.store_folder / named).read_bytes() == BYTES
        assert answer.content == b""
        answer = served.client.get(PATH, headers={"If-None-Match": ETAG})
        assert answer.status_code == 304


def test_a_client_that_takes_nothing_is_cut_off(server):
    request = f"GET {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\n\r\n"
    with socket.socket() as dawdling:
        dawdling.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        dawdling.connect(server.address)
        dawdling.sendall((request * 8).encode())
        time.sleep(3)
        port = dawdling.getsockname()[1]
        there = {one.client[1] for one in list(server.server.server_state.connections)}
        assert port not in there, "the server let go of it"


def test_a_store_that_goes_away_during_an_answer_is_a_line_and_no_traceback(tmp_path, caplog):
    caplog.set_level("INFO")

    class Away:
        def path(self, key):
            return None

        def read(self, key, part):
            yield bytes(1 << 20)
            raise SourceUnavailable("the store does not answer")

    with serving(tmp_path, router) as served:
        await_housekeeping(served.url)
        object.__setattr__(served.context, "store", Away())
        with (
            served.client.stream("GET", "/api/v1/test/bytes") as answer,
            pytest.raises(httpx.RemoteProtocolError),
        ):
            answer.read()
    loud = [one for one in caplog.records if one.levelname in ("WARNING", "ERROR", "CRITICAL")]
    assert [one.getMessage() for one in loud] == ["an answer broke off: the store does not answer"]
    assert not any(one.exc_info for one in caplog.records)
