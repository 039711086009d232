"""The child's side: it does jobs that it is given, one after the other, and may ask back."""

from __future__ import annotations

import itertools
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Final

from fragdex.errors import FragdexError
from fragdex.service.processes.failures import error_as_json, error_of_json
from fragdex.service.processes.limits import data_left
from fragdex.service.processes.lines import Lines

__all__ = ["Channel", "opened"]

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
