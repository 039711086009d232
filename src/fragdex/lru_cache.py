"""What was used last, up to a number of things or bytes; what several ask for, made once."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, Final, Generic, TypeVar

from fragdex.errors import Unavailable

Value = TypeVar("Value")


class LRUCache(Generic[Value]):
    """Values by key; those that were not used for longest go first. For several threads.

    Args:
        limit: of the weights of all values; 0: each call of `get_or_make` names one.
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


MOST_WAITING: Final = 16
"""Each who waits holds a thread of the service."""
MOST_SECONDS: Final = 60.0
T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Calls by key, of which those that come while one runs have its result.

    Args:
        what: is being made, for messages.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.Lock()
        self._running: dict[Any, Future[T]] = {}
        self._waiting: Counter[Any] = Counter()

    def do(self, key: Any, make: Callable[[], T]) -> T:
        """What `make` gives, called by the first of concurrent callers.

        Raises:
            Unavailable: 16 others wait, or it took longer than a minute.
            BaseException: what `make` raised, for all of them.
        """
        mine: Future[T] = Future()
        with self._lock:
            running = self._running.setdefault(key, mine)
            if running is not mine:
                if self._waiting[key] >= MOST_WAITING:
                    raise self._unavailable()
                self._waiting[key] += 1
        if running is not mine:
            return self._waited_for(key, running)
        try:
            value = make()
        except BaseException as error:
            self._over(key)
            mine.set_exception(error)
            raise
        self._over(key)
        mine.set_result(value)
        return value

    def _waited_for(self, key: Any, running: Future[T]) -> T:
        try:
            return running.result(MOST_SECONDS)
        except TimeoutError:
            if running.done():
                raise  # the maker's own
            raise self._unavailable() from None
        finally:
            with self._lock:
                self._waiting[key] -= 1
                if not self._waiting[key]:
                    del self._waiting[key]

    def _over(self, key: Any) -> None:
        with self._lock:
            del self._running[key]

    def _unavailable(self) -> Unavailable:
        return Unavailable(
            f"{self._what} is being indexed for others who asked before", retry_after=5
        )


class SingleFlightCache(LRUCache[T]):
    """An LRUCache of what is costly to make: concurrent callers wait for one of them."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self._flights = SingleFlight[T](what)

    def get_once(
        self,
        key: Any,
        limit: int,
        make: Callable[[], T],
        *,
        weight: Callable[[T], int] = lambda _: 1,
        among: Any = None,
    ) -> T:
        """As `get_or_make`, with `make` called once where several ask.

        Args:
            among: who shares one making; others make their own.

        Raises: as `SingleFlight.do`.
        """

        def once() -> T:
            # looks again: it may have been made between a look and this flight
            return self._flights.do(
                (among, key), lambda: self.get_or_make(key, limit, make, weight=weight)
            )

        return self.get_or_make(key, limit, once, weight=weight)
