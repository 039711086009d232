"""Whose media are decoded next: a few at once, tenants in turns. Who waits holds no thread."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from fragdex.errors import Unavailable

__all__ = ["DecodingTurns"]

MOST_AT_ONCE: Final = 2
MOST_WAITING: Final = 64
"""Requests of a tenant that wait; the next one is asked to come again."""


class DecodingTurns:
    """The turns of a process; a part of the context, used in its event loop alone."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []
        self._running: Counter[str] = Counter()

    @asynccontextmanager
    async def turn(self, tenant_id: str) -> AsyncIterator[None]:
        """Wait for the turn of a request of a tenant.

        Raises:
            Unavailable: too many of them wait.
        """
        if sum(one == tenant_id for one, _ in self._waiting) >= MOST_WAITING:
            raise Unavailable("other pictures or waveforms of yours are being made", retry_after=2)
        mine = tenant_id, asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        self._begin()
        try:
            await mine[1]
        except asyncio.CancelledError:
            if mine in self._waiting:
                self._waiting.remove(mine)
            else:
                self._end(tenant_id)
            raise
        try:
            yield
        finally:
            self._end(tenant_id)

    def _begin(self) -> None:
        """Let those begin for whom there is room: of the tenant first for whom least is running."""
        while self._waiting and self._running.total() < MOST_AT_ONCE:
            next_ = min(self._waiting, key=lambda one: self._running[one[0]])
            self._waiting.remove(next_)
            self._running[next_[0]] += 1
            next_[1].set_result(None)

    def _end(self, tenant_id: str) -> None:
        self._running[tenant_id] -= 1
        self._running += Counter()  # those of none are forgotten
        self._begin()

    def close(self) -> None:
        """Nobody's turn comes any more."""
        self._waiting.clear()
