"""Seats for work of this process that is no slice: so many at once, tenants in turn."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["Seats"]

_POLL_SECONDS: Final = 0.25


class Seats:
    """Limits how much is done at once; a free seat goes to the tenant whose turn it is.

    Args:
        count: seats.

    >>> seats = Seats(1)
    >>> with seats.taken("a tenant", lambda: None):
    ...     seats.free
    0
    """

    def __init__(self, count: int) -> None:
        self.free = count
        self._changed = threading.Condition()
        # Numbers as in `turns.py`; the second part tells those of one number apart, by age.
        self._waiting: list[tuple[int, int]] = []
        self._next: dict[str, int] = {}
        self._begun = self._came = 0

    @contextmanager
    def taken(self, tenant_id: str, check: Callable[[], None]) -> Iterator[None]:
        """Wait for a seat, and have it while the context lasts.

        Args:
            check: asked several times a second; what it raises ends the waiting.
        """
        with self._changed:
            number = max(self._begun, self._next.get(tenant_id, 0))
            self._next[tenant_id] = number + 1
            self._came += 1
            mine = (number, self._came)
            self._waiting.append(mine)
        try:
            # `check` may wait for a database: nobody else does.
            while not self._sat_down(mine):
                check()
        finally:
            with self._changed:
                self._waiting.remove(mine)
                # the next one may have a seat as well
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self.free += 1
                self._changed.notify_all()

    def _sat_down(self, mine: tuple[int, int]) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._may(mine), _POLL_SECONDS)
            if not self._may(mine):
                return False
            self.free -= 1
            self._begun = max(self._begun, mine[0])
            # Tenants that are not ahead would be given the same number without a row.
            self._next = {one: n for one, n in self._next.items() if n > self._begun}
            return True

    def _may(self, mine: tuple[int, int]) -> bool:
        return self.free > 0 and min(self._waiting) == mine
