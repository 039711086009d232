"""The HTTP interface, asked from a thread of the same process: no socket, no key.

Pages that are rendered ask the service for its records; they get what a client of their tenant
would get.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as TookTooLong
from contextlib import contextmanager
from dataclasses import field
from typing import Final
from urllib.parse import unquote, urlsplit

from starlette.types import ASGIApp, Message, Scope

from fragdex.errors import TooLarge, Unavailable
from fragdex.record import record
from fragdex.service.records.keys import READ
from fragdex.service.web.auth import CALLER, Caller
from fragdex.service.web.events import BrokenOff
from fragdex.traces import trace_context

_SECONDS: Final = 60.0


@record(slots=True)
class Reply:
    """An answer: names of headers in lower case, the body whole."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)


class InProcess:
    """The application of this process, once it serves; a part of the context."""

    def __init__(self) -> None:
        self._app: ASGIApp | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self, app: ASGIApp) -> None:
        """Take the application; called in the loop that it runs in."""
        self._app, self._loop = app, asyncio.get_running_loop()

    @contextmanager
    def run_in_thread(self, app: ASGIApp) -> Iterator[None]:
        """Answer from a thread of its own while the context lasts: for a process without a loop."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="in-process", daemon=True)
        thread.start()
        self._app, self._loop = app, loop
        try:
            yield
        finally:
            self.close()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def close(self) -> None:
        """Nobody is answered any more."""
        self._app = self._loop = None

    def get(self, tenant_id: str, url: str, headers: Mapping[str, str], most: int) -> Reply:
        """The answer to a GET, as a client of a tenant would have it.

        Args:
            url: its path and query count.
            most: bytes of the body.

        Raises:
            TooLarge: more of them.
            Unavailable: this process does not serve, or it took more than a minute.
        """
        app, loop = self._app, self._loop
        if app is None or loop is None:
            raise Unavailable("this process does not serve")
        work = asyncio.run_coroutine_threadsafe(
            _reply(app, _scope(tenant_id, url, headers), most), loop
        )
        try:
            return work.result(_SECONDS)
        except (TookTooLong, CancelledError):
            work.cancel()
            raise Unavailable(f"no answer within {_SECONDS:g} s") from None


async def _reply(app: ASGIApp, scope: Scope, most: int) -> Reply:
    reply, is_sent = Reply(), False

    async def receive() -> Message:
        nonlocal is_sent
        if is_sent:
            await asyncio.Event().wait()
        is_sent = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            reply.status = message["status"]
            reply.headers = {name.decode(): text.decode() for name, text in message["headers"]}
        elif message["type"] == "http.response.body":
            reply.body += message.get("body", b"")
            if len(reply.body) > most:
                raise BrokenOff

    await app(scope, receive, send)
    if len(reply.body) > most:
        raise TooLarge(f"the answer has more than {most} bytes", more={"limit": most})
    return reply


def _scope(tenant_id: str, url: str, headers: Mapping[str, str]) -> Scope:
    parts = urlsplit(url)
    fields = {name.lower(): text for name, text in headers.items()}
    fields |= {"host": parts.netloc, **trace_context()}
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": parts.scheme,
        "path": unquote(parts.path),
        "raw_path": parts.path.encode(),
        "query_string": parts.query.encode(),
        "root_path": "",
        "headers": [(name.encode(), text.encode("latin-1")) for name, text in fields.items()],
        "client": None,
        "server": (parts.hostname, parts.port),
        CALLER: Caller(tenant_id, key_id="", scope=READ),
    }
