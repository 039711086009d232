"""What a stranger may send, hold back, repeat or not take: bounded before anyone asks for a key."""

import contextlib
import json
import socket
import struct
import threading
import time

import pytest

from fragdex.serving.connection import (
    MAX_FIELDS,
    MAX_PIPELINED,
)
from service.serving import serving

HEAD_BYTES = 32 << 10
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"


@contextlib.contextmanager
def connected(server):
    with socket.create_connection(server.address, 60) as connection:
        yield connection


def sent(connection, data):
    """Send as much as the server takes; False where it closes before."""
    try:
        connection.sendall(data)
    except (BrokenPipeError, ConnectionResetError):
        return False
    return True


def answers(connection):
    """All that comes until the server closes."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(1 << 16):
            received += piece
    return received


def refused(connection, status):
    head, _, body = answers(connection).partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode())
    assert b"application/problem+json" in head
    problem = json.loads(body)
    assert problem["status"] == status
    return problem["detail"]


@pytest.mark.parametrize(
    "fields",
    [
        b"", b"Host: a\r\nHost: b", b"Host: a\r\nhost: a", b"Host: a/b", b"Host: a b",
        b"Host: a,b\r\nHost:", b"Host: user@a", b"Host: a:b", b"Host: a:80:80", b"Host: [::1",
        b"Host: [a]b", b"Host: http://a", b"Host: a\xe4", b"Host: a?b", b"Host: a%2",
        b"Host: [::1]x",
    ],
)  # fmt: skip
def test_a_head_has_one_host_that_is_one(server, fields):
    """RFC 9112, 3.2: none, two, or an invalid one is 400."""
    with connected(server) as connection:
        assert sent(connection, b"GET /healthz HTTP/1.1\r\n" + fields + b"\r\n\r\n")
        assert "Host" in refused(connection, 400)


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (b"Transfer-Encoding: gzip, chunked", 501),
        (b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", 501),
        (b"Transfer-Encoding: identity, chunked", 501),
        (b"Authorization: Bearer a\r\nAuthorization: Bearer b", 400),
        (b"authorization: Bearer a\r\nAUTHORIZATION: Bearer a", 400),
    ],
)
def test_a_head_that_two_readers_could_take_differently_is_refused(server, fields, status):
    with connected(server) as connection:
        assert sent(connection, b"POST /healthz HTTP/1.1\r\nHost: a\r\n" + fields + b"\r\n\r\n")
        assert refused(connection, status)


@pytest.mark.parametrize("path", ["/api%2fv1/files", "/api/v1%2Ffiles", "/api/v1/files%2fmd5/0"])
def test_an_encoded_slash_parts_no_segments(server, path):
    """Decoded, the path of a route would stand there, and another one in logs and proxies."""
    answer = server.client.get(path)
    assert (answer.status_code, answer.json()["type"]) == (404, "/docs#no-such-path")


def test_an_upgrade_is_passed_over_without_advice(server, caplog):
    fields = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    assert server.anyone.get("/healthz", headers=fields).status_code == 200
    assert "WebSocket" not in caplog.text


@pytest.mark.parametrize("reset", [False, True])
def test_a_client_that_sends_ahead_and_leaves_is_no_fault(server, caplog, reset):
    key = f"Authorization: Bearer {server.key}\r\n".encode()
    paths = [
        b"/api/v1/test/events/whole",
        b"/healthz",
        b"/docs",
        b"/nothing",
        b"/api/v1/test/bytes",
    ]
    for n in range(40):
        with connected(server) as connection:
            heads = [b"GET %s HTTP/1.1\r\nHost: a\r\n" % paths[(n + i) % 5] + key for i in range(9)]
            sent(connection, b"\r\n".join([*heads, b""]))
            time.sleep(0.002 * (n % 3))
            if reset:
                hard = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, hard)
    assert server.client.get("/healthz").status_code == 200
    time.sleep(0.3)
    assert [one.getMessage() for one in caplog.records if one.levelname == "ERROR"] == []


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        (b"1.0", b"A: b"), (b"1.0", b"Host: a"), (b"1.1", b"Host:"), (b"1.1", b"Host: a.b-c:8080"),
        (b"1.1", b"Host: [::1]:80"), (b"1.1", b"Host: 127.0.0.1:"), (b"1.1", b"host: A_b~%41"),
    ],
)  # fmt: skip
def test_hosts_that_are_some_are_taken(server, version, fields):
    head = b"GET /healthz HTTP/%s\r\n%s\r\nConnection: close\r\n\r\n" % (version, fields)
    with connected(server) as connection:
        assert sent(connection, head)
        assert answers(connection).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"a" * HEAD_BYTES + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        HEALTH + b"X: " + b"a" * HEAD_BYTES + b"\r\n\r\n",
        HEALTH + b"".join(b"X-%d: a\r\n" % n for n in range(MAX_FIELDS)) + b"\r\n",
    ],
    ids=["target", "field", "fields"],
)
def test_a_head_beyond_its_bounds_is_431(server, head):
    with connected(server) as connection:
        sent(connection, head)
        assert "32768 bytes and 100 fields" in refused(connection, 431)


def test_a_field_without_end_is_cut_off_before_it_is_kept(server):
    with connected(server) as connection:
        assert sent(connection, HEALTH + b"X: ")
        taken = 0
        while sent(connection, bytes(b"a" * 8192)) and taken < 100 * HEAD_BYTES:
            taken += 8192
            time.sleep(0.001)
        # what the server's and the client's system hold by themselves counts too
        assert taken < 50 * HEAD_BYTES


def test_a_head_within_its_bounds_is_taken(server):
    head = HEALTH + b"X: " + b"a" * (HEAD_BYTES - 200) + b"\r\nConnection: close\r\n\r\n"
    with connected(server) as connection:
        sent(connection, head)
        assert answers(connection).startswith(b"HTTP/1.1 200 ")


def chunked(*fields):
    head = "POST /api/v1/test/upload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
    return (head + "".join(f"{field}\r\n" for field in fields) + "\r\n").encode()


def test_Authorization_in_a_trailer_is_no_key(server):
    trailer = f"Authorization: Bearer {server.key}\r\n\r\n".encode()
    for path in (b"/api/v1/test/upload", b"/api/v1/test/things"):
        with connected(server) as connection:
            request = chunked("Connection: close").replace(b"/api/v1/test/upload", path)
            sent(connection, request + b'd\r\n{"name": "a"}\r\n0\r\n' + trailer)
            assert answers(connection).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("field", [b"X-%d: a\r\n", b"X-%d: " + b"a" * 4000 + b"\r\n"])
def test_a_trailer_beyond_the_bounds_of_a_head_is_cut_off(server, field):
    with connected(server) as connection:
        key = f"Authorization: Bearer {server.key}"
        assert sent(connection, chunked(key) + b"1\r\na\r\n0\r\n")
        for number in range(100_000):
            if not sent(connection, field % number):
                break
        else:
            pytest.fail("the whole trailer was taken")


def test_a_trailer_without_end_is_cut_off(server):
    with connected(server) as connection:
        key = f"Authorization: Bearer {server.key}"
        assert sent(connection, chunked(key) + b"1\r\na\r\n0\r\nX: ")
        for _ in range(4000):
            if not sent(connection, b"a" * 8192):
                break
        else:
            pytest.fail("32 MB of one field were taken")


def test_requests_sent_ahead_are_answered_up_to_a_bound(server):
    one = HEALTH + b"\r\n"
    last = HEALTH + b"Connection: close\r\n\r\n"
    with connected(server) as connection:
        sent(connection, one * (MAX_PIPELINED - 1) + last)
        assert answers(connection).count(b"HTTP/1.1 200 ") == MAX_PIPELINED
    with connected(server) as connection:
        sent(connection, one * 10_000)
        assert answers(connection).count(b"HTTP/1.1 200 ") < 10_000


@pytest.mark.parametrize(
    "request_head",
    [
        # the body of a request that was answered without it
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n",
        HEALTH + b"\r\n",
        b"",
    ],
    ids=["a body nobody reads", "empty lines after a request", "empty lines before any"],
)
def test_a_connection_is_not_kept_open_by_a_byte_now_and_then(tmp_path, request_head):
    byte = b"a" if b"Length" in request_head else b"\r\n"
    times = {"head_timeout_seconds": 1, "body_timeout_seconds": 1, "keep_alive_seconds": 1}
    with serving(tmp_path, **times) as served, connected(served) as connection:
        assert sent(connection, request_head)
        kept = 0
        while sent(connection, byte):
            kept += 1
            assert kept < 100
            time.sleep(0.3)


def test_a_body_that_comes_byte_by_byte_is_408(server):
    head = b"POST /api/v1/test/things HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n"
    key = f"Authorization: Bearer {server.key}\r\n\r\n".encode()
    with connected(server) as connection:
        assert sent(connection, head + key)
        stop = threading.Event()

        def dribble():
            while not stop.wait(0.2) and sent(connection, b" "):
                pass

        dribbling = threading.Thread(target=dribble)
        dribbling.start()
        try:
            connection.settimeout(60)
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 408 ")
        finally:
            stop.set()
            dribbling.join()


def test_the_key_is_looked_at_before_a_body_is_read(server):
    for path in ("/api/v1/test/things", "/api/v1/test/upload", "/api/v1/renders"):
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
        with connected(server) as connection:
            # no byte of the body is sent
            assert sent(connection, head.encode())
            connection.settimeout(60)
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 401 ")


def test_connections_beyond_the_limit_are_refused_and_the_rest_goes_on(tmp_path, caplog):
    with serving(tmp_path, max_connections=5) as served, contextlib.ExitStack() as stack:
        kept = [stack.enter_context(connected(served)) for _ in range(9)]
        over = [stack.enter_context(connected(served)) for _ in range(20)]
        closed = 0
        for connection in over:
            connection.settimeout(2)
            with contextlib.suppress(TimeoutError, ConnectionResetError):
                closed += connection.recv(1) == b""
        assert closed >= 10
        assert "one more was refused" in caplog.text
        for connection in kept:
            connection.close()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with contextlib.suppress(Exception):
                if served.anyone.get("/healthz").status_code == 200:
                    return
            time.sleep(0.1)
        pytest.fail("nobody is served any more")
