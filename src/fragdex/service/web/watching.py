"""One look at the database a tick for all records that anyone listens to, however many listen.

Streams of events do not ask the database: a `Watcher`, one an application, looks at all records
that are listened to, some statements a tick, and wakes their listeners where something changed.
Where nobody listens, nothing is asked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from anyio.to_thread import run_sync

from fragdex.errors import RecordNotFound, Unavailable
from fragdex.service.context import ServiceContext
from fragdex.service.logs import explained

__all__ = ["LAST", "Event", "Look", "Watcher", "look_once"]

log = logging.getLogger("fragdex.service")

Event: TypeAlias = tuple[str, Mapping[str, Any]]
"""A name of `events.NAMES` and what becomes its `data`."""

Look: TypeAlias = Callable[[ServiceContext, str, Sequence[str]], Mapping[str, Event]]
"""The states of some records of a tenant, by id; those that are gone are missing."""

LAST: Final = frozenset({"complete", "error"})
TICK_SECONDS: Final = 0.25
# Ids in one statement, far below SQLite's bound of 32766 variables.
_BATCH: Final = 500

_Key: TypeAlias = tuple[Look, str, str]


def look_once(look: Look, context: ServiceContext, tenant_id: str, record_id: str) -> Event:
    """The state of one record.

    Raises:
        RecordNotFound: this tenant has none of this id.
    """
    found = look(context, tenant_id, [record_id])
    if record_id not in found:
        raise RecordNotFound("there is no such record")
    return found[record_id]


@dataclass(slots=True)
class _Topic:
    """A record that is listened to."""

    state: Event
    listeners: int = 0
    version: int = 0
    failure: Exception | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, state: Event | None, failure: Exception | None = None) -> None:
        if state == self.state and failure is None:
            return
        self.state, self.failure = state or self.state, failure
        self.version += 1
        woken, self.changed = self.changed, asyncio.Event()
        woken.set()


class Watcher:
    """Looks for all listeners of a process. Used in one event loop."""

    def __init__(self, context: ServiceContext, tick_seconds: float = TICK_SECONDS) -> None:
        self.ticks = 0
        self._context, self._tick_seconds = context, tick_seconds
        self._topics: dict[_Key, _Topic] = {}
        self._ticking: asyncio.Task[None] | None = None

    async def states(
        self, look: Look, tenant_id: str, record_id: str, first: Event
    ) -> AsyncIterator[Event]:
        """The states of a record as they come, to the first one whose name is in LAST.

        Args:
            first: what the listener has just seen of it; given first.

        Raises:
            RecordNotFound: it was deleted.
        """
        key = (look, tenant_id, record_id)
        # where others listen, they may know more
        topic = self._topics.setdefault(key, _Topic(first))
        topic.listeners += 1
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._tick())
        try:
            while True:
                seen = topic.version
                if topic.failure is not None:
                    raise topic.failure
                yield topic.state
                if topic.state[0] in LAST:
                    return
                if topic.version == seen:
                    await topic.changed.wait()
        finally:
            topic.listeners -= 1
            if not topic.listeners and self._topics.get(key) is topic:
                del self._topics[key]

    async def _tick(self) -> None:
        try:
            while self._topics:
                await asyncio.sleep(self._tick_seconds)
                wanted: dict[tuple[Look, str], list[str]] = {}
                for look, tenant_id, record_id in self._topics:
                    wanted.setdefault((look, tenant_id), []).append(record_id)
                try:
                    found = await run_sync(self._look, wanted)
                except Unavailable as error:
                    log.warning("events wait: %s", explained(error))
                    continue
                except Exception as error:  # noqa: BLE001 — every listener is told, and ends
                    for topic in self._topics.values():
                        topic.take(None, error)
                    continue
                self.ticks += 1
                for key, state in found.items():
                    topic = self._topics.get(key)  # type: ignore[assignment]
                    if topic is not None:
                        gone = None if state else RecordNotFound("the record was deleted")
                        topic.take(state, gone)
        finally:
            self._ticking = None

    def _look(self, wanted: Mapping[tuple[Look, str], Sequence[str]]) -> dict[_Key, Event | None]:
        found: dict[_Key, Event | None] = {}
        for (look, tenant_id), ids in wanted.items():
            for first in range(0, len(ids), _BATCH):
                part = ids[first : first + _BATCH]
                states = look(self._context, tenant_id, part)
                found.update(((look, tenant_id, one), states.get(one)) for one in part)
        return found
