"""An origin on a real socket."""

import socket
import threading
import time
from contextlib import contextmanager

import httpx
import uvicorn

from fragdex.origin.application import Origin


@contextmanager
def serving(titles, settings=None):
    config = uvicorn.Config(Origin(titles, settings), port=0, log_level="error")
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    base = f"http://127.0.0.1:{listening.getsockname()[1]}"
    try:
        with httpx.Client(base_url=base, timeout=30, verify=False) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join(10)
