"""The rate limit of a key over all processes of one PostgreSQL; on SQLite that of each process."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from anyio.to_thread import run_sync

from fragdex.errors import FragdexError
from fragdex.service.logs import explained
from fragdex.service.records import rate_leases
from fragdex.service.records.database import Database
from fragdex.service.web.rates import MAX_KEYS, Rates, too_many

__all__ = ["SharedRates", "lease_of"]

log = logging.getLogger("fragdex.service")

PATIENCE_SECONDS: Final = 0.5
"""So long a request waits for the database to tell what its key may do."""
ALONE_SECONDS: Final = 5.0
"""So long a process counts for itself after the database did not answer."""
REFUSED_SECONDS: Final = 0.1
"""So long, at least, an empty bucket is believed to be empty."""
_SHARE: Final = 10


def lease_of(per_second: float, burst: int) -> int:
    """Requests that a process takes in advance: those of a second, or a tenth of the burst.

    Many processes may hold a lease of one key: all of them together must leave something.

    >>> lease_of(20, 100), lease_of(5, 100), lease_of(0.2, 2)
    (10, 5, 1)
    """
    return max(1, min(math.ceil(per_second), burst // _SHARE))


@dataclass(slots=True)
class _Held:
    """What this process has of a key: requests taken in advance, or the word that there is none."""

    left: int = 0
    empty_until: float = 0.0
    asking: asyncio.Future[None] | None = None


class SharedRates:
    """Requests a second of each key, whichever process answers.

    Args:
        database: on SQLite, each process counts for itself.
        per_second: 0: no limit.
    """

    def __init__(self, database: Database, per_second: float, burst: int) -> None:
        self._database, self._per_second, self._burst = database, per_second, burst
        self._lease = lease_of(per_second, burst)
        self._alone = Rates(per_second, burst)
        self._alone_until = math.inf if database.dialect == "sqlite" else 0.0
        self._held: OrderedDict[str, _Held] = OrderedDict()

    async def take(self, key: str) -> None:
        """Count one request of `key`.

        Raises:
            TooManyRequests: the bucket is empty; `retry_after` says when it is not.
        """
        if not self._per_second:
            return
        while time.monotonic() >= self._alone_until:
            held = self._of(key)
            if held.left:
                held.left -= 1
                return
            wait = held.empty_until - time.monotonic()
            if wait > 0:
                raise too_many(self._per_second, wait)
            await self._ask_once(key, held)
        self._alone.take(key)

    def _of(self, key: str) -> _Held:
        held = self._held.get(key)
        if held is None:
            held = self._held[key] = _Held()
            if len(self._held) > MAX_KEYS:
                self._held.popitem(last=False)
        self._held.move_to_end(key)
        return held

    async def _ask_once(self, key: str, held: _Held) -> None:
        """One look for all requests of a key that come at the same time."""
        if held.asking is None:
            held.asking = asyncio.ensure_future(self._ask(key, held))
        try:
            await asyncio.wait_for(asyncio.shield(held.asking), PATIENCE_SECONDS)
        except TimeoutError:
            self._count_alone("the database is slow")

    async def _ask(self, key: str, held: _Held) -> None:
        try:
            given, wait = await run_sync(
                rate_leases.take, self._database, key, self._lease, self._per_second, self._burst
            )
            held.left += given
            if not given:
                held.empty_until = time.monotonic() + max(wait, REFUSED_SECONDS)
        except FragdexError as error:
            self._count_alone(explained(error))
        finally:
            held.asking = None

    def _count_alone(self, reason: str) -> None:
        self._alone_until = time.monotonic() + ALONE_SECONDS
        log.warning("the rate limit is counted by each process for itself: %s", reason)
