"""Bodies on their way in: limits, pauses, clients that leave."""

import socket
import time

import httpx
import pytest

from service.serving import serving

UPLOAD = "/api/v1/test/upload"
LIMIT = 16 << 20


def head(server, path, *fields):
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {server.key}", *fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def answer_of(connection):
    connection.settimeout(60)
    received = b""
    while b"\r\n\r\n" not in received:
        piece = connection.recv(65536)
        if not piece:
            break
        received += piece
    return received.partition(b"\r\n")[0].decode()


def test_pieces_reach_the_thread_a_MiB_at_a_time(client):
    answer = client.post(UPLOAD, content=bytes(5 << 20))
    assert answer.json()["size"] == 5 << 20
    assert len(answer.json()["pieces"]) <= 6


def test_a_body_without_Content_Length_is_taken(client):
    answer = client.post(UPLOAD, content=(bytes(1000) for _ in range(3000)))
    assert answer.json()["size"] == 3_000_000


def test_an_empty_body_is_no_piece(client):
    assert client.post(UPLOAD).json() == {"pieces": [], "size": 0}


def test_over_the_limit_it_is_413_with_the_limit(server, client):
    with socket.create_connection(server.address) as connection:
        connection.sendall(head(server, UPLOAD, f"Content-Length: {LIMIT + 1}"))
        assert answer_of(connection) == "HTTP/1.1 413 Request Entity Too Large", "before any byte"
    answer = client.post(UPLOAD, content=(bytes(1 << 20) for _ in range(17)))
    assert answer.status_code == 413
    assert answer.json()["limit"] == LIMIT


def test_JSON_over_its_limit_is_413(client):
    answer = client.post("/api/v1/test/things", content=b" " * (2 << 20))
    assert answer.status_code == 413
    assert answer.json()["limit"] == 1 << 20


def test_a_body_that_stops_coming_is_408(server):
    for path in (UPLOAD, "/api/v1/test/things"):
        with socket.create_connection(server.address) as connection:
            connection.sendall(head(server, path, "Content-Length: 100") + b'{"name":')
            assert answer_of(connection) == "HTTP/1.1 408 Request Timeout"


def test_a_head_that_stops_coming_is_cut_off(server):
    for start in (b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nHost: x\r\n"):
        with socket.create_connection(server.address) as connection:
            connection.sendall(start)
            connection.settimeout(60)
            assert connection.recv(100) == b""
    with socket.create_connection(server.address) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        connection.settimeout(60)
        connection.sendall(b"GET /hea")
        while piece := connection.recv(4096):
            assert piece


def test_a_client_that_leaves_in_its_body_leaves_nothing_running(server):
    with socket.create_connection(server.address) as connection:
        connection.sendall(head(server, UPLOAD, "Content-Length: 1000000") + bytes(500_000))
    deadline = time.monotonic() + 60
    while server.context.metrics.requests_running._value.get() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert server.context.metrics.requests_running._value.get() == 0
    assert httpx.get(f"{server.url}/healthz", trust_env=False, timeout=60).status_code == 200


@pytest.mark.parametrize("body", [b"\x80", b"\xff\xfe{\x00}\x00", b"[" * 100_000, b"{"])
def test_what_is_no_json_is_refused_as_documented(tmp_path, body):
    with serving(tmp_path) as served:
        answer = served.client.post("/api/v1/image_files", content=body)
        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/problem+json"
