"""Server-sent events (WHATWG HTML, 9.2): the six names that published clients know, no other.

A stream that ends, ends with `complete` or `error`. One that is broken off (the client went away,
the server drains, the listener's token or key ends) ends with neither, and without the end of its
body: clients then connect again, and get what they missed, or 401.

Events tell states, so what was missed is where things are now, and never what is older than the id
that the client has. Ids tell how far the work was: any process can continue from them.

Streams do not ask the database: a `Watcher`, one an application, looks at all records that are
listened to, some statements a tick, and wakes their listeners where something changed. Where nobody
listens, nothing is asked.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import field
from typing import Annotated, Any, Final, TypeAlias

from anyio.to_thread import run_sync
from fastapi import Header
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fragdex.errors import FragdexError, RecordNotFound, Unavailable
from fragdex.record import record
from fragdex.service.context import ServiceContext
from fragdex.service.logs import explained
from fragdex.service.web.auth import admission_ends
from fragdex.service.web.problems import HTTP, problem, problem_of, unexpected
from fragdex.service.web.ranges import disconnected

log = logging.getLogger("fragdex.service")

Sent: TypeAlias = tuple[str, Mapping[str, Any], str]
"""A name of NAMES, what becomes its `data`, and its `id`."""

Batch: TypeAlias = tuple[Sent, ...]
"""Events that go out in one write."""

START: Final = "-"
"""The id before there is any: a listener that comes again with it gets the whole."""
END: Final = "end"
"""The id of the event that ends a stream: a listener that has it misses nothing."""

NAMES = frozenset({"size", "completion", "progress", "complete", "error", "heartbeat"})
HEARTBEAT_SECONDS = 15.0
ASK_AGAIN_SECONDS = 15.0
"""How often it is asked whether the listener's key still lives."""
_COUNT: Final = re.compile(r"[0-9]{1,18}")
_COUNT_OR_PART: Final = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?")


class BrokenOff(Exception):
    """The server ends, or the listener's token: the connection is closed within the body."""


LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        description="The `id` of the last event received; the stream continues after it.",
    ),
]
"""What a listener that comes again says."""


def progress_of(
    request: Request,
    context: ServiceContext,
    tenant_id: str,
    record_id: str,
    after: str | None,
    look: Look,
    to_batches: Callable[[AsyncIterator[Event], str | None], AsyncIterator[Batch]],
) -> Response:
    """The answer that tells how far a record is, as `to_batches` makes events of its states.

    Args:
        after: the id of the last event that the listener has. One that has all is answered 204,
            which tells an EventSource not to come again (WHATWG HTML, 9.2.3).

    Raises:
        RecordNotFound: this tenant has none of this id.
    """
    first = look_once(look, context, tenant_id, record_id)
    if after == END and first[0] in LAST:
        return Response(status_code=204)
    watcher: Watcher = request.app.state.watcher
    return EventStream(
        to_batches(watcher.states(look, tenant_id, record_id, first), after), after=after
    )


def event_answers(description: str) -> dict[int | str, dict[str, Any]]:
    """What `progress_of` answers, for the `responses` of a route."""
    # OpenAPI 3.1 knows a body as one text alone; what that text holds, JSON Schema can say
    whole = {
        "type": "string",
        "contentMediaType": "text/event-stream",
        "contentSchema": {"type": "array", "items": {"$ref": "#/components/schemas/Event"}},
    }
    return {
        200: {"description": description, "content": {"text/event-stream": {"schema": whole}}},
        204: {"description": "`Last-Event-ID` is that of the last event: there are no more"},
    }


async def counted(states: AsyncIterator[Event], after: str | None = None) -> AsyncIterator[Batch]:
    """How work on counted things continues: `size` first, once it is known, then `completion`s.

    A `completion` counts what was done since the last one: the sum ends at `size`, whoever
    connects when, and whatever was done twice. Published clients stop reading as soon as the sum
    is `size`, and ask for the result: the last `completion` goes out with `complete`, in one write,
    and not before the result is available.

    Args:
        states: `progress`, `complete` or `error`, with `size` (or None), `done`, and in the end
            `problem`, which is what `error` tells.
        after: the id of the last event that the listener has. Ids are the sum of the counts so
            far: what follows continues from there.
    """
    size: int | None = None
    sent = int(after) if after is not None and _COUNT.fullmatch(after) else None
    # closed with this one, so that nobody looks on for a client that went away
    async with aclosing(states):  # type: ignore[type-var]
        async for name, state in states:
            batch: list[Sent] = []
            if size is None and (state["size"] is not None or name in LAST):
                size = state["size"] or 0
                if sent is None or sent > size:
                    sent = 0
                    batch.append(("size", {"size": size}, "0"))
            if size is not None and sent is not None:
                done = size if name == "complete" else min(state["done"], size - 1)
                if done > sent:
                    batch.append(("completion", {"count": done - sent}, str(done)))
                    sent = done
            if name == "complete":
                batch.append(("complete", {}, END))
            elif name == "error":
                batch.append(("error", state["problem"], END))
            if batch:
                yield tuple(batch)


def _frame(event: Sent) -> bytes:
    name, data, id_ = event
    if name not in NAMES:
        raise ValueError(f"published clients break on an event called {name!r}")
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return f"id: {id_}\nevent: {name}\ndata: {text}\n\n".encode("ascii")


class EventStream(Response):
    """The answer that sends events as they come, and `heartbeat {}` where none comes.

    A batch goes out in one write. The stream ends with the first `complete` or `error`; where
    `batches` raises, or ends with neither, an `error` with the problem is sent. Once the client is
    gone `batches` is closed.
    """

    def __init__(
        self,
        batches: AsyncIterator[Batch],
        *,
        heartbeat: float = HEARTBEAT_SECONDS,
        after: str | None = None,
    ) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers(
            {
                "Content-Type": "text/event-stream; charset=utf-8",
                "Cache-Control": "no-store",
                # nginx would gather events otherwise
                "X-Accel-Buffering": "no",
            }
        )
        self._batches, self._heartbeat = batches, heartbeat
        # an id that is not ours goes no further
        known = after is not None and _COUNT_OR_PART.fullmatch(after)
        self._last = after if known and after is not None else START

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return
        draining: asyncio.Event = Request(scope).app.state.draining
        coming = asyncio.create_task(self._put(send))
        gone = asyncio.create_task(disconnected(receive))
        drained = asyncio.create_task(draining.wait())
        ended = asyncio.create_task(admission_ends(Request(scope), ASK_AGAIN_SECONDS))
        tasks = {coming, gone, drained, ended}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                coming.result()
            elif not gone.done():
                raise BrokenOff("the server is ending, or the listener's token or key has ended")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _put(self, send: Send) -> None:
        async for batch in self._with_heartbeats():
            body = b"".join(map(_frame, batch))
            last = batch[-1][0] in LAST
            await send({"type": "http.response.body", "body": body, "more_body": not last})
            if last:
                return

    async def _with_heartbeats(self) -> AsyncIterator[Batch]:
        """The batches with heartbeats between them, an error as the last one."""
        source = aiter(self._batches)
        next_one = asyncio.ensure_future(_next(source))
        try:
            while True:
                done, _ = await asyncio.wait({next_one}, timeout=self._heartbeat)
                if not done:
                    yield (("heartbeat", {}, self._last),)
                    continue
                batch = next_one.result()
                if batch is None:
                    log.error("a stream of events ended without complete or error")
                    yield (("error", _problem_data(problem(HTTP[500], HTTP[500].title)), END),)
                    return
                self._last = batch[-1][2]
                yield batch
                if batch[-1][0] in LAST:
                    return
                next_one = asyncio.ensure_future(_next(source))
        except Exception as error:  # noqa: BLE001 — whatever happened, the stream has to end well
            answer = problem_of(error) if isinstance(error, FragdexError) else unexpected(error)
            yield (("error", _problem_data(answer), END),)
        finally:
            next_one.cancel()
            await asyncio.wait({next_one})
            close = getattr(source, "aclose", None)
            if close is not None:
                await close()


async def _next(source: AsyncIterator[Batch]) -> Batch | None:
    return await anext(source, None)


def _problem_data(answer: Response) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(bytes(answer.body))
    return data


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
    events = look(context, tenant_id, [record_id])
    if record_id not in events:
        raise RecordNotFound("there is no such record")
    return events[record_id]


@record(slots=True)
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
                    events = await run_sync(self._look, wanted)
                except Unavailable as error:
                    log.warning("events wait: %s", explained(error))
                    continue
                except Exception as error:  # noqa: BLE001 — every listener gets it, and ends
                    for topic in self._topics.values():
                        topic.take(None, error)
                    continue
                self.ticks += 1
                for key, state in events.items():
                    topic = self._topics.get(key)  # type: ignore[assignment]
                    if topic is not None:
                        gone = None if state else RecordNotFound("the record was deleted")
                        topic.take(state, gone)
        finally:
            self._ticking = None

    def _look(self, wanted: Mapping[tuple[Look, str], Sequence[str]]) -> dict[_Key, Event | None]:
        events: dict[_Key, Event | None] = {}
        for (look, tenant_id), ids in wanted.items():
            for first in range(0, len(ids), _BATCH):
                part = ids[first : first + _BATCH]
                states = look(self._context, tenant_id, part)
                events.update(((look, tenant_id, one), states.get(one)) for one in part)
        return events
