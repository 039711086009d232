"""The server: uvicorn over bounded connections, and an end that lets requests finish."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import uvicorn
from fastapi import FastAPI

from fragdex.service.config import Settings
from fragdex.serving.connection import BoundedConnection, ConnectionLimits

log = logging.getLogger("fragdex.service")


class Server(uvicorn.Server):
    """uvicorn that tells when it begins, and tells the application when its end does."""

    def __init__(
        self,
        config: uvicorn.Config,
        app: FastAPI,
        began: Callable[[str], object] | None,
        notice_seconds: float,
    ) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = asyncio.Event()
        super().__init__(config)
        self._app, self._began, self._notice_seconds = app, began, notice_seconds

    @property
    def should_exit(self) -> bool:
        """Whether the end has begun; any thread may say so."""
        return self._should_exit

    @should_exit.setter
    def should_exit(self, value: bool) -> None:
        self._should_exit = value
        if value and self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._ended.set)

    async def main_loop(self) -> None:
        """Keep the Date of answers right until the end; uvicorn's own wakes ten times a second."""
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), 1.0)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and tell the URL, whose port may have been any free one."""
        await super().startup(sockets)
        listening = [one for server in self.servers for one in server.sockets]
        if self._began is not None and listening:
            host, port = listening[0].getsockname()[:2]
            self._began(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more requests; streams of events break off, the others end by themselves.

        First comes the notice: `/readyz` is 503, requests are still taken, so that balancers look
        elsewhere before the port closes.
        """
        self._app.state.ending = True
        await self._give_notice()
        self._app.state.draining.set()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal drains, the second ends at once; draining is a good end, so exit 0."""
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True
        self._app.state.ending = True

    async def _give_notice(self) -> None:
        ends = time.monotonic() + self._notice_seconds
        if self._notice_seconds:
            log.info("requests are taken for %g s, then the port closes", self._notice_seconds)
        counter = 0
        while time.monotonic() < ends and not self.force_exit:
            await self.on_tick(counter)  # keeps the Date of answers right
            counter += 1
            await asyncio.sleep(0.1)


class _NoWordOnBrokenStreams(logging.Filter):
    """Streams that break off while the server ends are no errors."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "returned without completing response" not in record.getMessage()


def server_of(
    app: FastAPI,
    settings: Settings,
    began: Callable[[str], object] | None = None,
    *,
    address: tuple[str, int] | None = None,
) -> Server:
    """A server for `app`, not started; `began` gets its URL once it listens.

    Args:
        address: host and port to listen on; None: those of the settings.
    """
    host, port = address or (settings.host, settings.port)
    limits = ConnectionLimits(
        head_bytes=settings.max_head_bytes,
        head_seconds=settings.head_timeout_seconds,
        answer_seconds=settings.body_timeout_seconds,
        connections=2 * settings.max_connections,
    )
    logging.getLogger("uvicorn.error").addFilter(_NoWordOnBrokenStreams())
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=BoundedConnection.within(limits),
        ws="none",
        lifespan="on",
        log_config=None,
        log_level=settings.log_level,
        access_log=False,  # `Front` writes it
        server_header=False,
        proxy_headers=bool(settings.forwarded_allow_ips),
        forwarded_allow_ips=settings.forwarded_allow_ips,
        limit_concurrency=settings.max_connections,
        timeout_keep_alive=max(1, round(settings.keep_alive_seconds)),
        timeout_graceful_shutdown=max(1, round(settings.drain_seconds)),
    )
    return Server(config, app, began, settings.drain_notice_seconds)
