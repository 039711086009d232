"""Server-sent events (WHATWG HTML, 9.2): the six names that published clients know, no other.

A stream that ends, ends with `complete` or `error`. One that is broken off (the client went away,
the server drains) ends with neither, and without the end of its body: clients then connect again,
and get a whole picture.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fragdex.errors import FragdexError
from fragdex.service.web.problems import HTTP, problem_of, unexpected

__all__ = ["LAST", "NAMES", "Event", "changes", "counted", "event_answers", "stream"]

log = logging.getLogger("fragdex.service")

Event = tuple[str, Mapping[str, Any]]
"""A name of NAMES and what becomes its `data`."""

NAMES = frozenset({"size", "completion", "progress", "complete", "error", "heartbeat"})
LAST = frozenset({"complete", "error"})
HEARTBEAT_SECONDS = 15.0


class BrokenOff(Exception):
    """The server ends; the connection is closed in the middle of the body."""


def stream(events: AsyncIterator[Event], *, heartbeat: float = HEARTBEAT_SECONDS) -> Response:
    """The answer that sends `events` as they come, and `heartbeat {}` where none comes.

    It ends with the first `complete` or `error`. Where `events` raises, or ends with neither, an
    `error` with the problem is sent. Once the client is gone `events` is closed.
    """
    return _Stream(events, heartbeat)


def event_answers(description: str) -> dict[int | str, dict[str, Any]]:
    """What `stream` answers, for the `responses` of a route."""
    event = {
        "type": "object",
        "required": ["event", "data"],
        "properties": {
            "event": {"enum": sorted(NAMES)},
            "data": {"type": "string", "contentMediaType": "application/json"},
        },
    }
    # of OpenAPI 3.2: `schema` would speak of the whole stream as one text
    return {
        200: {"description": description, "content": {"text/event-stream": {"itemSchema": event}}}
    }


async def changes(look: Callable[[], Event], every: float = 0.25) -> AsyncIterator[Event]:
    """What `look` tells, in a thread, each time it differs; to the end of a record's work.

    Args:
        look: the state of a record as an event; called until its name is in LAST.
        every: seconds between two looks.
    """
    last: Event | None = None
    while True:
        event = await run_sync(look)
        if event != last:
            yield event
            last = event
        if event[0] in LAST:
            return
        await asyncio.sleep(every)


async def counted(look: Callable[[], Event]) -> AsyncIterator[Event]:
    """How work on counted things goes on: `size` first, once it is known, then `completion`s.

    A `completion` counts what was done since the last one: the sum ends at `size`, whoever
    connects when, and whatever was done twice.

    Args:
        look: `progress`, `complete` or `error`, with `size` (or None), `done`, and in the end
            `problem`, which is what `error` tells.
    """
    size: int | None = None
    sent = 0
    # closed with this one, so that nobody looks on for a client that went away
    async with aclosing(changes(look)) as states:  # type: ignore[type-var]
        async for name, state in states:
            if size is None and (state["size"] is not None or name in LAST):
                size = state["size"] or 0
                yield "size", {"size": size}
            done = size if name == "complete" else min(state["done"], size or 0)
            if size is not None and done is not None and done > sent:
                yield "completion", {"count": done - sent}
                sent = done
            if name == "complete":
                yield "complete", {}
            elif name == "error":
                yield "error", state["problem"]


def _frame(event: Event) -> bytes:
    name, data = event
    if name not in NAMES:
        raise ValueError(f"published clients break on an event called {name!r}")
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return f"event: {name}\ndata: {text}\n\n".encode("ascii")


class _Stream(Response):
    def __init__(self, events: AsyncIterator[Event], heartbeat: float) -> None:
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
        self._events, self._heartbeat = events, heartbeat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return
        draining: asyncio.Event = Request(scope).app.state.draining
        coming = asyncio.create_task(self._put(send))
        gone = asyncio.create_task(_disconnected(receive))
        drained = asyncio.create_task(draining.wait())
        try:
            await asyncio.wait({coming, gone, drained}, return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                coming.result()
            elif not gone.done():
                raise BrokenOff("the server is ending")
        finally:
            for task in (coming, gone, drained):
                task.cancel()
            await asyncio.wait({coming, gone, drained})

    async def _put(self, send: Send) -> None:
        async for event in self._told():
            body = _frame(event)
            last = event[0] in LAST
            await send({"type": "http.response.body", "body": body, "more_body": not last})
            if last:
                return

    async def _told(self) -> AsyncIterator[Event]:
        """Events with heartbeats between them, an error as the last one."""
        source = aiter(self._events)
        next_one = asyncio.ensure_future(_next(source))
        try:
            while True:
                done, _ = await asyncio.wait({next_one}, timeout=self._heartbeat)
                if not done:
                    yield "heartbeat", {}
                    continue
                event = next_one.result()
                if event is None:
                    log.error("a stream of events ended without complete or error")
                    yield "error", _problem_data(None)
                    return
                yield event
                if event[0] in LAST:
                    return
                next_one = asyncio.ensure_future(_next(source))
        except Exception as error:  # noqa: BLE001 — whatever happened, the stream has to end well
            yield "error", _problem_data(error)
        finally:
            next_one.cancel()
            await asyncio.wait({next_one})
            close = getattr(source, "aclose", None)
            if close is not None:
                await close()


async def _next(source: AsyncIterator[Event]) -> Event | None:
    return await anext(source, None)


def _problem_data(error: Exception | None) -> dict[str, Any]:
    if error is None:
        row = HTTP[500]
        return {"type": row.type, "title": row.title, "status": row.status, "detail": row.title}
    known = isinstance(error, FragdexError)
    answer = problem_of(error) if isinstance(error, FragdexError) and known else unexpected(error)
    data: dict[str, Any] = json.loads(bytes(answer.body))
    return data


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
