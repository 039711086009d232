"""What was used last, up to a number of things or bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class LRUCache(Generic[Value]):
    """Values by key; those that were not used for longest go first. For several threads.

    Args:
        limit: of the weights of all values; 0: each call of `get_or_make` names one.

    >>> cache = LRUCache[str](10)
    >>> for key in ("a", "b", "a", "c"):
    ...     cache.put(key, key, 5)
    >>> cache.get("a"), cache.get("b"), cache.get("c")
    ('a', None, 'c')
    """

    def __init__(self, limit: int = 0) -> None:
        self._limit, self._held = limit, 0
        self._values: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Value | None:
        """The value of a key, or None."""
        with self._lock:
            entry = self._values.get(key)
            if entry is None:
                return None
            self._values.move_to_end(key)
            return entry[0]

    def put(self, key: Hashable, value: Value, weight: int = 1) -> None:
        """Keep a value; one that weighs more than the limit is not kept at all."""
        with self._lock:
            self._drop(key)
            if weight <= self._limit:
                self._keep(key, value, weight, self._limit)

    def get_or_make(
        self,
        key: Hashable,
        limit: int,
        make: Callable[[], Value],
        worth: Callable[[Value], bool] = lambda _: True,
        weight: Callable[[Value], int] = lambda _: 1,
    ) -> Value:
        """The value of a key; made where there is none, by several at once if it must be.

        Args:
            limit: of the weights of all values. The last one is kept whatever it weighs.
            worth: whether what was made is kept.
        """
        value = self.get(key)
        if value is None:
            value = make()
            if worth(value):
                with self._lock:
                    self._drop(key)
                    self._keep(key, value, weight(value), limit)
        return value

    def drop(self, key: Hashable) -> None:
        """Forget a key, if it is there."""
        with self._lock:
            self._drop(key)

    def close(self) -> None:
        """Forget all."""
        with self._lock:
            self._values.clear()
            self._held = 0

    def _keep(self, key: Hashable, value: Value, weight: int, limit: int) -> None:
        self._values[key] = value, weight
        self._held += weight
        while self._held > limit and len(self._values) > 1:
            self._drop(next(iter(self._values)))

    def _drop(self, key: Hashable) -> None:
        if key in self._values:
            self._held -= self._values.pop(key)[1]
