"""Threads for what waits for the store, apart from those for what needs the database alone.

A store that hangs holds every thread that asks it, for as long as a request to it may take. Those
that wait for a place then wait in the event loop, and everything else is answered as ever. Whatever
asks the store, also where it may not, goes through here; a test of every request holds that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial, wraps
from typing import Any, Final, TypeVar

from anyio import CapacityLimiter
from anyio.lowlevel import RunVar
from anyio.to_thread import current_default_thread_limiter, run_sync

from fragdex.service.context import ServiceContext

T = TypeVar("T")

_PLACES: Final[RunVar[CapacityLimiter]] = RunVar("fragdex_store_places")


def set_thread_count(count: int) -> None:
    """Have the event loop give this many threads to what needs the store, and to what does not."""
    current_default_thread_limiter().total_tokens = count
    _places().total_tokens = count


def _places() -> CapacityLimiter:
    try:
        return _PLACES.get()
    except LookupError:
        _PLACES.set(CapacityLimiter(current_default_thread_limiter().total_tokens))
        return _PLACES.get()


async def run_at_store(work: Callable[..., T], *args: Any) -> T:
    """What `work(*args)` returns, in a thread that may wait for the store."""
    return await run_sync(work, *args, limiter=_places())


async def run_by_records(context: ServiceContext, work: Callable[[ServiceContext], T]) -> T:
    """What `work(context)` returns; a thread for the store is taken only if it asks the store.

    `work` is done again then: before it asks, it does nothing that would be wrong twice.
    """
    try:
        return await run_sync(work, context.without_store())
    except BlockingIOError:
        return await run_at_store(work, context)


def asks_store(endpoint: Callable[..., T]) -> Callable[..., Any]:
    """Have the endpoint of a route run in a thread that may wait for the store."""

    @wraps(endpoint)
    async def in_thread(*args: Any, **kwargs: Any) -> T:
        return await run_at_store(partial(endpoint, *args, **kwargs))

    return in_thread


async def iterated_at_store(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The same pieces, each made in a thread that may wait for the store."""
    while (piece := await run_at_store(next, pieces, None)) is not None:
        yield piece
