"""What was used last, up to a number of bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

__all__ = ["LRUCache"]

Value = TypeVar("Value")


class LRUCache(Generic[Value]):
    """Values by key; those that were not used for longest go first. For several threads.

    Args:
        max_bytes: of all values; larger ones are not held at all.

    >>> cache = LRUCache[str](10)
    >>> for key in ("a", "b", "a", "c"):
    ...     cache.put(key, key, 5)
    >>> cache.get("a"), cache.get("b"), cache.get("c")
    ('a', None, 'c')
    """

    def __init__(self, max_bytes: int) -> None:
        self._max, self._held = max_bytes, 0
        self._values: OrderedDict[str, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> Value | None:
        """The value of a key, or None."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: str, value: Value, size: int) -> None:
        """Hold a value of so many bytes."""
        with self._lock:
            self._drop(key)
            if size > self._max:
                return
            self._values[key] = value, size
            self._held += size
            while self._held > self._max:
                self._drop(next(iter(self._values)))

    def drop(self, key: str) -> None:
        """Forget a key, if it is there."""
        with self._lock:
            self._drop(key)

    def _drop(self, key: str) -> None:
        if key in self._values:
            self._held -= self._values.pop(key)[1]
