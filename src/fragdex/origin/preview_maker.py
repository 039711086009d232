"""Previews are decoded few at a time, each once, and the last ones stay in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any, Final

from fragdex.lru_cache import LRUCache
from fragdex.origin.previews import Preview
from fragdex.views.view import View

__all__ = ["MAX_BYTES", "PreviewMaker", "TooManyWaiting"]

MAX_BYTES: Final = 64 << 20
"""Of previews in memory."""

Opened = Callable[[], AbstractContextManager[Any]]
"""Opens the source of a film, in any form that `fragdex.open_source` takes."""


class TooManyWaiting(Exception):
    """So many previews wait to be made that another one is refused."""


class PreviewMaker:
    """Makes previews, so that decoding never takes more than some threads.

    Pictures and sound wait in two lines: waveforms of hours do not hold up thumbnails.

    Args:
        pictures, sounds: made at a time.
        waiting: at most, in each line.
        max_bytes: of previews that stay in memory.

    For several threads at a time.
    """

    def __init__(
        self,
        *,
        pictures: int = 2,
        sounds: int = 1,
        waiting: int = 64,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._lines = {
            "picture": ThreadPoolExecutor(pictures, "previews"),
            "sound": ThreadPoolExecutor(sounds, "previews"),
        }
        self._waiting = waiting
        self._made: LRUCache[View] = LRUCache(max_bytes)
        self._making: dict[str, tuple[str, Future[View]]] = {}
        self._lock = threading.Lock()

    def view(self, preview: Preview, opened: Opened) -> Future[View]:
        """A preview as a view, now or later.

        Args:
            preview: what is wanted.
            opened: opens the film, in another thread.

        Raises:
            TooManyWaiting: ask again later.
        The future raises what `Preview.view` does.
        """
        if preview.kind == "text":
            ready: Future[View] = Future()
            ready.set_result(preview.view(None))
            return ready
        key = preview.etag
        with self._lock:
            found = self._made.get(key)
            if found is not None:
                ready = Future()
                ready.set_result(found)
                return ready
            if key in self._making:
                return self._making[key][1]
            if sum(kind == preview.kind for kind, _ in self._making.values()) >= self._waiting:
                raise TooManyWaiting
            future = self._lines[preview.kind].submit(self._make, key, preview, opened)
            self._making[key] = preview.kind, future
        future.add_done_callback(lambda _: self._done(key))
        return future

    def close(self) -> None:
        """Begin no more; what is being made is still finished."""
        for line in self._lines.values():
            line.shutdown(wait=False, cancel_futures=True)

    def _make(self, key: str, preview: Preview, opened: Opened) -> View:
        with opened() as source:
            made = preview.view(source)
        self._made.put(key, made, made.size + 1024)
        return made

    def _done(self, key: str) -> None:
        with self._lock:
            self._making.pop(key, None)
