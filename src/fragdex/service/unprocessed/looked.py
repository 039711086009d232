"""What was seen of files when their bytes arrived, for whoever asks next in this process.

Clients upload a file and then have it processed: without this, a child process would index it once
more to answer what was known a moment ago. After a restart, or in another process, one does.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

__all__ = ["Looked", "Seen"]

MOST: Final = 4096
"""Files that are remembered; the one that was seen first is forgotten first."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a file.

    Attributes:
        small: whether its boxes are few enough to be parsed in a thread; then nothing else is said.
        reason: why it must be processed, as `why_not` said of a large one.
    """

    small: bool
    reason: str | None = None


class Looked:
    """What is known of files, by their keys in the store; the bytes of a key never change.

    >>> looked = Looked()
    >>> looked.put("a", Seen(small=True))
    >>> looked.get("a"), looked.get("b")
    (Seen(small=True, reason=None), None)
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[str, Seen] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, key: str, seen: Seen) -> None:
        """Remember what was seen."""
        with self._lock:
            self._seen[key] = seen
            if len(self._seen) > MOST:
                self._seen.popitem(last=False)

    def get(self, key: str) -> Seen | None:
        """What was seen, or None: it is not known any more."""
        with self._lock:
            return self._seen.get(key)

    def close(self) -> None:
        """Forget all."""
        with self._lock:
            self._seen.clear()
