"""The rate limit of a key in one process: a bucket of requests that fills steadily."""

from __future__ import annotations

import time
from collections import OrderedDict

from fragdex.errors import TooManyRequests

__all__ = ["MAX_KEYS", "Rates", "too_many"]

MAX_KEYS = 10_000
"""Keys remembered at a time; the one not seen for the longest is forgotten, its bucket full."""


class Rates:
    """Requests a second of each key.

    >>> rates = Rates(per_second=1, burst=2)
    >>> rates.take("key"), rates.take("key")
    (None, None)
    >>> rates.take("key")
    Traceback (most recent call last):
    fragdex.errors.TooManyRequests: this key may make 1 request a second
    """

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
    """What a key over its rate is told; seconds after which it may come again."""
    many = "request" if per_second == 1 else "requests"
    return TooManyRequests(
        f"this key may make {per_second:g} {many} a second",
        retry_after=retry_after,
        more={"limit": per_second},
    )
