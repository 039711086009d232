"""What several ask for at once is made once: the others wait for it, few of them and not long."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, Generic, TypeVar

from fragdex.errors import Unavailable
from fragdex.lru_cache import LRUCache

MOST_WAITING: Final = 16
"""Each who waits holds a thread of the service."""
MOST_SECONDS: Final = 60.0
T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Calls by key, of which those that come while one runs have its result.

    Args:
        what: is being made, for messages.

    >>> SingleFlight[int]("the film").do("key", lambda: 3)
    3
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.Lock()
        self._running: dict[Any, Future[T]] = {}
        self._waiting: Counter[Any] = Counter()

    def do(self, key: Any, make: Callable[[], T]) -> T:
        """What `make` gives, called by the first of those who ask at once.

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
            made = make()
        except BaseException as error:
            self._over(key)
            mine.set_exception(error)
            raise
        self._over(key)
        mine.set_result(made)
        return made

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
    """An LRUCache of what is costly to make: those who ask for it at once wait for one of them."""

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
