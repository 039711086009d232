"""A server in a process of its own, which counts what it is asked for."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

__all__ = ["RANGES", "Server", "range_server"]

RANGES = Path(__file__).parent / "remote" / "serve.py"
"""Serves the first bytes of a file, late and with faults."""


class Server:
    """A program that prints its URL, and what it counted at every line on its input.

    A context manager.
    """

    def __init__(self, program: Path, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(program), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.url = self._line()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def counted(self) -> tuple[int, int, int]:
        """Requests, bytes and most requests at once since the last time."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        requests, size, at_once = json.loads(self._line())
        return requests, size, at_once

    def close(self) -> None:
        """End the server."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def range_server(path: Path, size: int, faults: Mapping[str, Any]) -> Server:
    """Serve the first `size` bytes of a file, 0: all."""
    server = Server(RANGES, str(path), str(size), json.dumps(faults))
    # It hashes its content for the first answer.
    request = urllib.request.Request(server.url, headers={"Range": "bytes=0-0"})
    urllib.request.urlopen(request).read()
    server.counted()
    return server
