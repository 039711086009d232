"""Looks at what may hang: each in a thread of its own, one for all callers, and with an end."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")


class Look(Generic[T]):
    """What a question answers, asked once at a time for everyone.

    A caller takes no thread of the service's: were the answer to hang, those would all be gone.

    Args:
        ask: the question; it may take any time, and what it raises is raised to all who asked.
        patience: seconds from its beginning after which nobody waits for the answer.
        holds: for how many seconds an answer is given again.
    """

    def __init__(
        self, ask: Callable[[], T], patience: float, holds: Callable[[T], float] = lambda _: 0.0
    ) -> None:
        self._ask, self._patience, self._holds = ask, patience, holds
        self._lock = threading.Lock()
        self._asked: Future[T] | None = None
        self._began = self._ends = 0.0

    async def outcome(self) -> T | None:
        """The answer, a fresh one if need be; None: there is none in time."""
        with self._lock:
            over = self._asked is None or (self._asked.done() and time.monotonic() >= self._ends)
            if over:
                self._asked, self._began = Future(), time.monotonic()
                threading.Thread(target=self._run, args=(self._asked,), daemon=True).start()
            asked, left = self._asked, self._began + self._patience - time.monotonic()
        assert asked is not None
        if not asked.done():
            if left <= 0:
                return None
            # not cancelled with the one who waits: others wait for the same
            await asyncio.wait([asyncio.wrap_future(asked)], timeout=left)
        return asked.result() if asked.done() else None

    def _run(self, asked: Future[T]) -> None:
        try:
            answer = self._ask()
            with self._lock:
                self._ends = time.monotonic() + self._holds(answer)
        except BaseException as error:  # noqa: BLE001 — whoever asked gets it
            asked.set_exception(error)
        else:
            asked.set_result(answer)
