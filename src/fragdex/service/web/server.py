"""The server: uvicorn, with clients cut off that dawdle, and an end that lets requests finish."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fragdex.service.config import Settings

__all__ = ["Server", "server_of"]


class PatientProtocol(HttpToolsProtocol):
    """HTTP/1.1 that waits so long for the head of a request, so long for an answer to be taken.

    A pause inside of a request's body is `bodies.pieces`' to notice, since only who reads it knows.
    """

    head_seconds: float
    answer_seconds: float

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._waiting: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._waiting = self.loop.call_later(self.head_seconds, self._cut_off)

    def on_message_begin(self) -> None:
        """Begin to wait for the rest of this head, on a connection that was idle."""
        if self._waiting is None:
            self._waiting = self.loop.call_later(self.head_seconds, self._cut_off)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is here."""
        self._stop_waiting()
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """The client takes its answer slower than we write it."""
        super().pause_writing()
        self._writing = self.loop.call_later(self.answer_seconds, self._cut_off)

    def resume_writing(self) -> None:
        """The client has taken what was waiting for it."""
        self._stop_writing()
        super().resume_writing()

    def on_body(self, body: bytes) -> None:
        """Hand on what came in one piece as it is; it would be copied twice."""
        if not self.cycle.body:
            self.cycle.body, body = body, b""  # type: ignore[assignment]
        super().on_body(body)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._stop_waiting()
        self._stop_writing()
        super().connection_lost(exc)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _stop_writing(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _cut_off(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()


class Server(uvicorn.Server):
    """uvicorn that tells when it begins, and tells the application when its end does."""

    def __init__(
        self, config: uvicorn.Config, app: FastAPI, began: Callable[[str], object] | None
    ) -> None:
        super().__init__(config)
        self._app, self._began = app, began

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and tell the URL, whose port may have been any free one."""
        await super().startup(sockets)
        listening = [one for server in self.servers for one in server.sockets]
        if self._began is not None and listening:
            host, port = listening[0].getsockname()[:2]
            self._began(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more requests; streams of events break off, the others end by themselves."""
        self._app.state.draining.set()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal drains, the second ends at once; draining is a good end, so exit 0."""
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True


class _NoWordOnBrokenStreams(logging.Filter):
    """Streams that break off while the server ends are no errors."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "returned without completing response" not in record.getMessage()


def server_of(
    app: FastAPI, settings: Settings, began: Callable[[str], object] | None = None
) -> Server:
    """A server for `app`, not started; `began` is told its URL once it listens."""
    patience = {
        "head_seconds": settings.head_timeout_seconds,
        "answer_seconds": settings.body_timeout_seconds,
    }
    logging.getLogger("uvicorn.error").addFilter(_NoWordOnBrokenStreams())
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=type("PatientProtocol", (PatientProtocol,), patience),
        ws="none",
        lifespan="on",
        log_config=None,
        log_level=settings.log_level,
        access_log=settings.access_log,
        server_header=False,
        proxy_headers=bool(settings.forwarded_allow_ips),
        forwarded_allow_ips=settings.forwarded_allow_ips,
        limit_concurrency=settings.max_connections,
        timeout_keep_alive=max(1, round(settings.keep_alive_seconds)),
        timeout_graceful_shutdown=max(1, round(settings.drain_seconds)),
    )
    return Server(config, app, began)
