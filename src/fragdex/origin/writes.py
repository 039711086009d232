"""Files that are being written, and until when."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import Final

from fragdex.sources.files import write_file

_MOST_SEEN: Final = 4096
"""Files whose last write is remembered."""


class NotYet(Exception):
    """A file is still being written, and the requested part cannot be made yet."""


class Writes:
    """When files were last written, on this machine's clock.

    The clock of a share, which gives files their times, may be fast or slow. So what counts is
    when a file was seen to change; only of one that is seen for the first time, its own time does.

    Args:
        seconds: after its last write for which a file counts as being written; 0: none does.
        notes: folder in which processes tell each other of files that are over.

    Attributes:
        seconds: as given.
    """

    def __init__(self, seconds: float, notes: Path | None = None) -> None:
        self.seconds, self._notes = seconds, notes
        self._over: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._seen: OrderedDict[str, tuple[int, int, float]] = OrderedDict()
        self._lock = threading.Lock()

    def until(self, place: str) -> float:
        """On the clock of `time.time`, until when a file is being written; 0: it is not."""
        written = self.last(place)
        if not self.seconds or written is None or self.is_over(place):
            return 0.0
        return written + self.seconds if time.time() < written + self.seconds else 0.0

    def last(self, place: str) -> float | None:
        """On the clock of `time.time`, when a file was last written; None: it is not there."""
        try:
            now, is_at = time.time(), os.stat(place)
        except OSError:
            return None  # whoever opens it says why
        size, mtime_ns = is_at.st_size, is_at.st_mtime_ns
        with self._lock:
            known = self._seen.get(place)
            if known is None or mtime_ns < known[1]:
                written = min(now, mtime_ns / 1e9)
            elif known[:2] == (size, mtime_ns):
                written = known[2]
            else:
                written = now
            self._seen[place] = size, mtime_ns, written
            self._seen.move_to_end(place)
            while len(self._seen) > _MOST_SEEN:
                self._seen.popitem(last=False)
        return written

    def end(self, place: str) -> None:
        """Nothing more comes to a file, unless it is written again: another one follows it."""
        if not self.until(place):
            return
        with suppress(OSError):
            is_at = os.stat(place)
            with self._lock:
                self._over[place] = is_at.st_size, is_at.st_mtime_ns
                while len(self._over) > _MOST_SEEN:
                    self._over.popitem(last=False)
            note = self._note(place)
            if note is not None:
                write_file(note, [f"{is_at.st_size} {is_at.st_mtime_ns}".encode()])

    def is_over(self, place: str) -> bool:
        """Whether another file follows, as this process or another one found."""
        try:
            is_at = os.stat(place)
            now = is_at.st_size, is_at.st_mtime_ns
            note = self._note(place)
            if self._over.get(place) == now or note is None:
                return self._over.get(place) == now
            return note.read_bytes() == f"{now[0]} {now[1]}".encode()
        except OSError:
            return False

    def _note(self, place: str) -> Path | None:
        if self._notes is None:
            return None
        name = hashlib.md5(os.fsencode(place), usedforsecurity=False).hexdigest()
        return self._notes / f"{name}.over"
