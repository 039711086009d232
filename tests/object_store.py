"""An object store that speaks S3 (moto's), as a process of its own on loopback.

In the process of the tests it would cost 140 MB, and room for all that is stored in it.
"""

import importlib.util
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest


@contextmanager
def object_store():
    """The address of an empty store, or a skipped test where moto is missing."""
    if importlib.util.find_spec("moto") is None:
        pytest.skip("moto, which speaks S3, is missing")
    command = [sys.executable, os.path.abspath(__file__)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            address = process.stdout.readline().strip()
            assert address, "moto did not start: it says above why"
            yield address
        finally:
            process.terminate()


def environment_of(address):
    """What an operator would write into the environment to reach it."""
    return {
        "AWS_ENDPOINT": address,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
    }


def serve():
    """Print the address; end when whoever started this has ended."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    print(f"http://{host}:{port}", flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    serve()
