"""The child's side: it does jobs that it is given, one after the other, and may ask back.

Messages are JSON lines over a socket between two processes, and open files with them.
"""

from __future__ import annotations

import itertools
import json
import os
import queue
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Final

from fragdex import errors as kinds
from fragdex.errors import FragdexError, ServiceError, UndecodableMedia
from fragdex.sandbox.processes import data_left

_PARENT_IS_GONE: Final = 3
_CLEARING_SECONDS: Final = 10.0
# Of its memory: what may have been freed since some could not be had.
_LITTLE: Final = 1 / 8

Job = Callable[..., dict[str, Any]]


def opened(file: int, name: str) -> BinaryIO:
    """A descriptor that was handed over as an open file that is called so."""
    return open(name, "rb", opener=lambda *_: file)


class Channel:
    """What a child hears from whoever started it, and tells them.

    Args:
        lines: to the parent.
        missing: which walls could not be had.
    """

    def __init__(self, lines: Lines, missing: list[str]) -> None:
        self.missing = missing
        self._lines = lines
        self._numbers = itertools.count()
        self._waiting: dict[int, queue.SimpleQueue[tuple[dict[str, Any], list[int]]]] = {}
        self._jobs: queue.SimpleQueue[tuple[dict[str, Any], list[int]]] = queue.SimpleQueue()
        self._over: Callable[[], None] = lambda: None

    def send(self, **message: Any) -> None:
        """Tell the parent something, such as how far a job is."""
        try:
            self._lines.send(message)
        except OSError:
            # Nobody hears it any more; the thread that listens ends this process.
            time.sleep(_CLEARING_SECONDS)
            raise

    def ask(self, **question: Any) -> tuple[dict[str, Any], list[int]]:
        """The parent's answer to a question, and files that it has opened; from any thread.

        Raises:
            FragdexError: what answering it raised there.
        """
        number = next(self._numbers)
        answer: queue.SimpleQueue[tuple[dict[str, Any], list[int]]] = queue.SimpleQueue()
        self._waiting[number] = answer
        self.send(ask=number, **question)
        plain, files = answer.get()
        if "failed" in plain:
            raise error_of_json(plain["failed"])
        return plain, files

    def serve(self, jobs: Mapping[str, Job], over: Callable[[], None] = lambda: None) -> None:
        """Do jobs until the parent is gone, and end this process.

        Args:
            jobs: by their names; each takes the members of its message, `files` among them where
                files were sent.
            over: called before this process ends: nobody else clears up after it then.
        """
        self._over = over
        threading.Thread(target=self._listen, name="listen", daemon=True).start()
        while True:
            message, files = self._jobs.get()
            if files:
                message["files"] = files
            try:
                self.send(done=jobs[message.pop("do")](**message))
            except FragdexError as error:
                self.send(failed=error_as_json(error))
            except MemoryError:
                self.send(failed={"memory": True})
            except SystemError:
                # CPython without memory for a frame loses the MemoryError.
                left, most = data_left(os.getpid()) or (1, 1)
                if left > most * _LITTLE:
                    raise
                self.send(failed={"memory": True})

    def _listen(self) -> None:
        try:
            for message, files in self._lines:
                if "answer" in message:
                    waiting = self._waiting.pop(message.pop("answer"), None)
                    if waiting is not None:
                        waiting.put((message, files))
                else:
                    self._jobs.put((message, files))
            self._over()
        except MemoryError:
            # Who waits for an answer would wait for ever.
            os.write(2, b"MemoryError where messages are read")
        finally:
            os._exit(_PARENT_IS_GONE)


_PIECE: Final = 1 << 18
_MOST_FILES: Final = 64


class Lines:
    """One end of a socket pair."""

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


_PLACE: Final = ("path", "offset", "expected", "found")


def error_as_json(error: FragdexError) -> dict[str, Any]:
    """An error of the library or of the service as plain values."""
    plain: dict[str, Any] = {
        "kind": type(error).__name__,
        "message": error.message,
        "advice": error.advice,
    }
    if isinstance(error, UndecodableMedia):
        return plain | {"start": error.start, "stop": error.stop}
    if isinstance(error, ServiceError):
        plain |= {"more": error.more, "pointer": error.pointer, "retry_after": error.retry_after}
    values = {name: getattr(error, name) for name in _PLACE}
    return plain | {
        name: value if isinstance(value, int) else str(value)
        for name, value in values.items()
        if value is not None
    }


def error_of_json(plain: Mapping[str, Any]) -> FragdexError:
    """The same error again."""
    more = dict(plain)
    name, message = more.pop("kind"), more.pop("message")
    kind: type[FragdexError] = getattr(kinds, name, None) or FragdexError
    if kind is UndecodableMedia:
        error = UndecodableMedia(message, advice=more["advice"])
        error.start, error.stop = more["start"], more["stop"]
        return error
    return kind(message, **more)
