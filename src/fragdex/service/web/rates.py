"""The rate limit of a key: a bucket in this process, or one row that all processes take from.

A row has the instant at which the key's bucket is full again (generic cell rate algorithm: ITU-T
I.371, annex A). A bucket that is full needs no row. PostgreSQL alone: SQLite has one machine.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import OrderedDict
from typing import Final

import sqlalchemy as sa
from anyio.to_thread import run_sync

from fragdex.errors import FragdexError, TooManyRequests
from fragdex.record import record
from fragdex.service.logs import explained
from fragdex.service.records.database import Database, insert
from fragdex.service.records.tables import rates

log = logging.getLogger("fragdex.service")

MAX_KEYS = 10_000
"""Keys remembered at a time; the one not seen for the longest is forgotten, its bucket full."""


class RateLimits:
    """Requests a second of each key."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second, self._burst = per_second, burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> None:
        """Count one request of `key`.

        Raises:
            TooManyRequests: the bucket is empty; `retry_after` says when it is not.
        """
        if not self._per_second:
            return
        now = time.monotonic()
        left, at = self._buckets.pop(key, (float(self._burst), now))
        left = min(self._burst, left + (now - at) * self._per_second)
        if left < 1:
            self._buckets[key] = left, now
            raise too_many(self._per_second, (1 - left) / self._per_second)
        self._buckets[key] = left - 1, now
        if len(self._buckets) > MAX_KEYS:
            self._buckets.popitem(last=False)


def too_many(per_second: float, retry_after: float) -> TooManyRequests:
    """The answer to a key over its rate; seconds after which it may come again."""
    many = "request" if per_second == 1 else "requests"
    return TooManyRequests(
        f"this key may make {per_second:g} {many} a second",
        retry_after=retry_after,
        more={"limit": per_second},
    )


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
    """
    return max(1, min(math.ceil(per_second), burst // _SHARE))


@record(slots=True)
class _Bucket:
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
        self._alone = RateLimits(per_second, burst)
        self._alone_until = math.inf if database.dialect == "sqlite" else 0.0
        self._held: OrderedDict[str, _Bucket] = OrderedDict()

    async def take(self, key: str) -> None:
        """Count one request of `key`.

        Raises:
            TooManyRequests: the bucket is empty; `retry_after` says when it is not.
        """
        if not self._per_second:
            return
        while time.monotonic() >= self._alone_until:
            bucket = self._of(key)
            if bucket.left:
                bucket.left -= 1
                return
            wait = bucket.empty_until - time.monotonic()
            if wait > 0:
                raise too_many(self._per_second, wait)
            await self._ask_once(key, bucket)
        self._alone.take(key)

    def _of(self, key: str) -> _Bucket:
        bucket = self._held.get(key)
        if bucket is None:
            bucket = self._held[key] = _Bucket()
            if len(self._held) > MAX_KEYS:
                self._held.popitem(last=False)
        self._held.move_to_end(key)
        return bucket

    async def _ask_once(self, key: str, bucket: _Bucket) -> None:
        """One look for all requests of a key that come at the same time."""
        if bucket.asking is None:
            bucket.asking = asyncio.ensure_future(self._ask(key, bucket))
        try:
            await asyncio.wait_for(asyncio.shield(bucket.asking), PATIENCE_SECONDS)
        except TimeoutError:
            self._count_alone("the database is slow")

    async def _ask(self, key: str, bucket: _Bucket) -> None:
        try:
            given, wait = await run_sync(
                take_leases, self._database, key, self._lease, self._per_second, self._burst
            )
            bucket.left += given
            if not given:
                bucket.empty_until = time.monotonic() + max(wait, REFUSED_SECONDS)
        except FragdexError as error:
            self._count_alone(explained(error))
        finally:
            bucket.asking = None

    def _count_alone(self, reason: str) -> None:
        self._alone_until = time.monotonic() + ALONE_SECONDS
        log.warning("the rate limit is counted by each process for itself: %s", reason)


_NOW = sa.cast(sa.extract("epoch", sa.func.clock_timestamp()), sa.Float)


def take_leases(
    database: Database, key_id: str, wanted: int, per_second: float, burst: int
) -> tuple[int, float]:
    """Take requests of a key out of its bucket.

    Args:
        wanted: at least 1.
        per_second: how fast the bucket fills.
        burst: what it holds.

    Returns how many were there, at most `wanted`; and in how many seconds the next one is, where
    none was.

    Raises:
        Unavailable: the database does not answer.
    """
    mine = rates.c.key_id == key_id
    looked = sa.select(rates.c.full_at, _NOW).where(mine).with_for_update()
    with database.write(passing=True) as connection:
        row = connection.execute(looked).one_or_none()
        if row is None:
            new = insert(connection, rates).values(key_id=key_id, full_at=0.0)
            connection.execute(new.on_conflict_do_nothing(index_elements=["key_id"]))
            row = connection.execute(looked).one()
        full_at, now = row
        missing = max(0.0, full_at - now) * per_second
        given = min(wanted, int(burst - missing))
        if given < 1:
            return 0, (1 - burst + missing) / per_second
        full = max(full_at, now) + given / per_second
        connection.execute(rates.update().where(mine).values(full_at=full))
    return given, 0.0


def forget_full(database: Database) -> None:
    """Delete the rows of buckets that are full."""
    if database.dialect == "postgresql":
        with database.write(passing=True) as connection:
            connection.execute(rates.delete().where(rates.c.full_at < _NOW - 1))
