"""What was used last, up to a number of bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

__all__ = ["FrameCache"]


class FrameCache:
    """Values with sizes; the ones that were used least recently go first.

    Attributes:
        limit: bytes.
        size: bytes of what is held.

    >>> cache = FrameCache(10)
    >>> cache.put("a", 1, 6)
    >>> cache.put("b", 2, 6)
    >>> cache.get("a"), cache.get("b"), cache.size
    (None, 2, 6)
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.size = limit, 0
        self._held: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()

    def get(self, key: Hashable) -> Any:
        """The value, or None."""
        found = self._held.get(key)
        if found is None:
            return None
        self._held.move_to_end(key)
        return found[0]

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Hold a value, unless it alone is too large."""
        old = self._held.pop(key, None)
        if old is not None:
            self.size -= old[1]
        if size > self.limit:
            return
        self._held[key] = value, size
        self.size += size
        while self.size > self.limit:
            _, (_, gone) = self._held.popitem(last=False)
            self.size -= gone

    def clear(self) -> None:
        """Forget everything."""
        self._held.clear()
        self.size = 0
