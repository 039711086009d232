"""Bytes of videos that are read while others are decoded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Final

from fragdex.fragments.table import Int64
from fragdex.frames import Frames
from fragdex.frames.decoders import begin_anew_in_forks

THREADS: Final = "fragdex-read-ahead"
"""What the names of its threads begin with."""

Counts = tuple[int, int, int]
"""Pictures decoded, bytes and requests of a video so far."""


def counts_of(frames: Frames) -> Counts:
    """What the frames of a video have cost so far."""
    return frames.decoded, frames.source.bytes_read, frames.source.requests


class ReadAhead:
    """Reads the bytes of some videos in the background; one group of them at a time.

    Of each video at most `fragdex.frames.frame_reader.READ_AT_ONCE` bytes. Its threads end when
    they have read. It goes to other processes empty, by fork as well.

    Args:
        threads: at most.

    >>> import numpy as np
    >>> frames = Frames("fixtures/open-gop.mp4")
    >>> ahead = ReadAhead(2)
    >>> ahead.read(7, frames, np.array([40, 41]))
    >>> before = ahead.finish()[7]
    >>> requests = frames.source.requests
    >>> frames[[40, 41]].numbers.tolist(), frames.source.requests - requests
    ([40, 41], 0)
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._start()
        begin_anew_in_forks(self)

    def _start(self) -> None:
        self._lock = Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._before: dict[int, Counts] = {}

    def begin_anew(self) -> None:
        """Read nothing, in a process that was forked: its threads stayed in the other one."""
        self._start()

    def read(self, video: int, frames: Frames, numbers: Int64, soon: Int64 | None = None) -> None:
        """Begin to read what `frames.take(numbers, soon=soon)` needs.

        Args:
            video: by which it is known; nothing else uses its frames until `finish`.
        """
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._threads, THREADS)
            self._before[video] = counts_of(frames)
            # What it raises stays there: it is read again where it is wanted, and fails there.
            self._pool.submit(frames.read_ahead, numbers, soon)

    def end_group(self) -> None:
        """Let the threads end when they have read: nothing is added until `finish`."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)

    def finish(self) -> dict[int, Counts]:
        """Wait until everything is read, and its threads have ended.

        Returns: by video, what its frames had cost before.
        """
        pool, before = self._pool, self._before
        self._pool, self._before = None, {}
        if pool is not None:
            pool.shutdown()
        return before

    def __reduce__(self) -> tuple[type[ReadAhead], tuple[int]]:
        return ReadAhead, (self._threads,)
