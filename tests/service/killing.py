"""`fragdex serve` as a process that can be killed and started again."""

import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx


class Service:
    """`fragdex serve` as a process that can be killed and started again."""

    def __init__(self, data):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url, self.data = f"http://127.0.0.1:{self.port}", data
        self.start()
        line = self.process.stdout.readline() + self.process.stdout.readline()
        self.key = next(word for word in line.split() if word.startswith("ef_"))

    def start(self):
        command = [sys.executable, "-m", "fragdex", "serve", "--data", str(self.data)]
        self.process = subprocess.Popen(
            [*command, "--port", str(self.port), "--job-workers", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for _ in range(600):
            try:
                httpx.get(f"{self.url}/healthz", trust_env=False, timeout=60, verify=False)
                return
            except httpx.TransportError:
                time.sleep(0.1)
        raise AssertionError("the service did not start")

    def kill(self):
        self.process.kill()
        self.process.communicate()


@contextmanager
def service(data):
    one = Service(data)
    try:
        yield one
    finally:
        one.kill()
