"""What was used last, up to a number of bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from threading import Lock
from typing import Any

from fragdex.frames.decoders import DecoderPool
from fragdex.frames.forks import abandon, begin_anew_in_forks

__all__ = ["CachePart", "FrameCache"]


class FrameCache:
    """Values with sizes, the ones that were used least recently go first; and decoders that wait.

    A process that is forked begins with none of them.

    Attributes:
        limit: bytes.
        size: bytes of what is held.
        decoders: of films that are coded alike.

    Args:
        decoders: how many wait at most; None: as many as one film may need.

    >>> cache = FrameCache(10)
    >>> cache.put("a", 1, 6)
    >>> cache.put("b", 2, 6)
    >>> cache.get("a"), cache.get("b"), cache.size
    (None, 2, 6)
    """

    def __init__(self, limit: int, decoders: int | None = None) -> None:
        self.limit, self._most_decoders = limit, decoders
        self.decoders = DecoderPool() if decoders is None else DecoderPool(decoders)
        self._start()
        begin_anew_in_forks(self)

    def _start(self) -> None:
        self.size = 0
        self._held: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = Lock()

    def begin_anew(self) -> None:
        """Hold nothing, in a process that was forked."""
        abandon(self._held)
        self._start()

    def get(self, key: Hashable) -> Any:
        """The value, or None."""
        with self._lock:
            found = self._held.get(key)
            if found is None:
                return None
            self._held.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Hold a value, unless it alone is too large."""
        with self._lock:
            self._drop(key)
            if size > self.limit:
                return
            self._held[key] = value, size
            self.size += size
            while self.size > self.limit:
                self._drop(next(iter(self._held)))

    def drop(self, keys: Iterable[Hashable]) -> None:
        """Forget values, where they are still held."""
        with self._lock:
            for key in keys:
                self._drop(key)

    def _drop(self, key: Hashable) -> None:
        old = self._held.pop(key, None)
        if old is not None:
            self.size -= old[1]

    def __reduce__(self) -> tuple[type[FrameCache], tuple[int, int | None]]:
        """A cache goes to another process empty."""
        return FrameCache, (self.limit, self._most_decoders)


class CachePart:
    """The values that one reader has in a cache.

    Attributes:
        limit: bytes of the whole cache.

    >>> whole = FrameCache(10)
    >>> one, other = CachePart(whole), CachePart(whole)
    >>> one.put("a", 1, 6)
    >>> other.get("a"), one.get("a")
    (None, 1)
    >>> one.clear()
    >>> whole.size
    0
    """

    def __init__(self, cache: FrameCache) -> None:
        self._cache, self.limit = cache, cache.limit
        self._keys: set[Hashable] = set()

    def get(self, key: Hashable) -> Any:
        """The value, or None."""
        return self._cache.get((self, key))

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Hold a value, unless it alone is too large."""
        self._keys.add(key)
        self._cache.put((self, key), value, size)

    def clear(self) -> None:
        """Forget them."""
        self._cache.drop([(self, key) for key in self._keys])
        self._keys.clear()
