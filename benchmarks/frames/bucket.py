"""A bucket with a delay, in a process of its own: python bucket.py SECONDS FILE...

Prints the URL of the server; the films are s3://films/NAME. At a line on its input prints
requests, bytes and most requests at once since the line before, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import boto3
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server


class Counted:
    """An application whose answers come late and are counted."""

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self._app, self.late = app, 0.0
        self._lock = threading.Lock()
        self._now = 0
        self.counts = [0, 0, 0]

    def __call__(self, environ: dict[str, Any], start: Any) -> Iterator[bytes]:
        with self._lock:
            self._now += 1
            self.counts[0] += 1
            self.counts[2] = max(self.counts[2], self._now)
        time.sleep(self.late)
        try:
            for part in self._app(environ, start):
                self.counts[1] += len(part)
                yield part
        finally:
            with self._lock:
                self._now -= 1


class Handler(WSGIRequestHandler):
    """Says nothing."""

    def log(self, type: str, message: str, *args: Any) -> None:
        """Nothing."""


def main() -> None:
    """Serve films until the input ends."""
    late, paths = float(sys.argv[1]), sys.argv[2:]
    counted = Counted(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, counted, threaded=True, request_handler=Handler)
    url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = boto3.client(
        "s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )  # fmt: skip
    client.create_bucket(Bucket="films")
    for path in map(Path, paths):
        client.put_object(Bucket="films", Key=path.name, Body=path.read_bytes(), ACL="public-read")
    counted.late, counted.counts = late, [0, 0, 0]
    print(url, flush=True)
    for _ in sys.stdin:
        print(json.dumps(counted.counts), flush=True)
        counted.counts = [0, 0, 0]


if __name__ == "__main__":
    main()
