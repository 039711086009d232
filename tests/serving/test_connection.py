"""Bytes of files that a connection sends, and what is said of files in memory."""

import os
import socket
import threading
import time

import uvicorn

from fragdex.serving.connection import (
    SEND_FILE,
    BoundedConnection,
    ConnectionLimits,
    is_resident,
)


def test_bytes_of_a_file_arrive_in_order_however_late_they_are_taken(tmp_path):
    data = os.urandom(8 << 20)
    path = tmp_path / "stored"
    path.write_bytes(data)
    head = {"type": "http.response.start", "status": 200}
    head["headers"] = [(b"content-length", b"%d" % (3 + len(data)))]

    async def app(scope, receive, send):
        assert SEND_FILE in scope["extensions"]
        await send(head)
        await send({"type": "http.response.body", "body": b"abc", "more_body": True})
        with path.open("rb") as file:
            place = {"file": file.fileno(), "offset": 0, "count": len(data)}
            await send({"type": SEND_FILE, **place})

    limits = ConnectionLimits(1 << 15, 10, 10, 10)
    config = uvicorn.Config(
        app, http=BoundedConnection.within(limits), lifespan="off", log_level="error"
    )
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        with socket.create_connection(listening.getsockname(), 60) as connection:
            for _ in range(2):  # the connection stays
                connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                time.sleep(0.1)
                received = b""
                while b"\r\n\r\n" not in received:
                    received += connection.recv(1 << 10)
                body = bytearray(received.partition(b"\r\n\r\n")[2])
                while len(body) < 3 + len(data):
                    body += connection.recv(1 << 20)
                assert body == b"abc" + data
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()


def test_what_is_in_memory_is_told_where_the_system_can(tmp_path):
    path = tmp_path / "stored"
    path.write_bytes(bytes(1 << 20))
    with path.open("rb") as file:
        can_tell = hasattr(os, "RWF_NOWAIT")
        assert is_resident(file.fileno(), 5, (1 << 20) - 5) in ({True} if can_tell else {False})
        assert not is_resident(file.fileno(), 1, 1 << 20)  # it ends before
