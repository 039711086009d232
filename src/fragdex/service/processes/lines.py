"""JSON lines over a socket between two processes, and open files with them."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Final

__all__ = ["Lines"]

_PIECE: Final = 1 << 18
_MOST_FILES: Final = 64


class Lines:
    """One end of a socket pair.

    >>> ours, theirs = map(Lines, socket.socketpair())
    >>> ours.send({"do": "look"})
    >>> ours.close()
    >>> list(theirs)
    [({'do': 'look'}, [])]
    >>> theirs.close()
    """

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._sending = threading.Lock()

    def send(self, message: dict[str, Any], files: Sequence[int] = ()) -> None:
        """Send a message, and descriptors that the other end gets copies of.

        Raises:
            OSError: nobody is there any more.
        """
        if files:
            message = message | {"files": len(files)}
        line = json.dumps(message).encode() + b"\n"
        with self._sending:
            sent = socket.send_fds(self._socket, [line], files) if files else 0
            self._socket.sendall(memoryview(line)[sent:])

    def __iter__(self) -> Iterator[tuple[dict[str, Any], list[int]]]:
        """Messages and the descriptors that came with each, until the other end is closed."""
        parts: list[bytes] = []
        waiting: deque[int] = deque()
        while True:
            try:
                data, files, _, _ = socket.recv_fds(self._socket, _PIECE, _MOST_FILES)
            except OSError:
                data, files = b"", []
            for file in files:
                os.set_inheritable(file, False)
            waiting += files
            if not data:
                break
            first, *more = data.split(b"\n")
            parts.append(first)
            for rest in more:
                message = json.loads(b"".join(parts))
                parts = [rest]
                yield message, [waiting.popleft() for _ in range(message.pop("files", 0))]
        for file in waiting:
            os.close(file)

    def close(self) -> None:
        """Close this end."""
        with self._sending:
            self._socket.close()

    def hang_up(self) -> None:
        """End what is read here, from whichever thread."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return
