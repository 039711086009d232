"""An origin on a real socket, by itself or behind nginx."""

import re
import shutil
import socket
import subprocess
import threading
import time
from contextlib import contextmanager

import httpx
import pytest
import uvicorn

from fragdex.origin.application import Origin

NGINX = pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")


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


@contextmanager
def behind_nginx(folder, page, ports):
    """A client of nginx with the configuration of a page, in which it listens at 8081.

    `ports`: of the page → the real ones.
    """
    text = page.read_text("utf-8")
    (block,) = re.findall(r"^```nginx\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    real = {**ports, 8081: port}
    block = re.sub(r"\b\d{4}\b", lambda found: str(real.get(int(found[0]), found[0])), block)
    folders = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid nginx.pid; error_log nginx.err;\n"
        f"events {{}}\nhttp {{ access_log off;\n{folders}{block}}}\n"
    )
    command = ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    front = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)
    with subprocess.Popen(command) as nginx:
        try:
            for _ in range(200):
                try:
                    front.get("/healthz")
                    break
                except httpx.ConnectError:
                    assert nginx.poll() is None, (folder / "nginx.err").read_text()
                    time.sleep(0.05)
            yield front
        finally:
            front.close()
            nginx.terminate()
