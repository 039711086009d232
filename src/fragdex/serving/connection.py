"""A connection, with a bound on all that a stranger may send, hold back, repeat or not take.

The bounds hold before a key is checked. A pause inside of a request's body, and a body that
comes too slowly, are `bodies.pieces`' to notice, since only who reads it knows.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from fragdex.record import record

log = logging.getLogger("fragdex.service")

MAX_FIELDS: Final = 100
"""Fields of a head: each costs some 200 bytes of memory, however short it is."""
MAX_PIPELINED: Final = 16
"""Requests that may wait after the one in work. Browsers send none ahead, load tools a few."""
_NOT_VALID: Final = "this is not a valid HTTP/1.1 request"
_HOST: Final = re.compile(
    rb"(?:\[(?:[0-9A-Fa-f:.]+|v[0-9A-Fa-f]+\.[\w.~!$&'()*+,;=:-]+)\]"
    rb"|(?:[\w.~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?",
    re.ASCII,
)
"""RFC 3986, 3.2.2 and 3.2.3; empty where the target has no authority (RFC 9112, 3.2)."""
_FIELD_BYTES: Final = len(": \r\n")
INTERIM: Final = "fragdex.interim"
"""The extension of ASGI by which a route sends interim responses (RFC 9110, 15.2): a function that
is given status, reason and fields. It sends none where none may be sent any more."""
SEND_FILE: Final = "http.response.zerocopysend"
"""ASGI's extension by which the kernel sends bytes of an open file: `file` is its descriptor,
`offset` and `count` say which bytes. The descriptor may be closed after `send`."""
_SENDS_FILES: Final = sys.platform == "linux"
_TURN: Final = 1 << 20
"""Bytes of a file that one connection sends before others have their turn."""
_REFILL: Final = 16 << 10
"""Bytes of a file that go through the transport where a socket is full."""
_PROBE: Final = 128 << 10
"""Bytes from one look at a file to the next: as many as the system reads ahead."""


@record(frozen=True, slots=True)
class ConnectionLimits:
    """What one connection may take.

    Attributes:
        head_bytes: of the head of a request, and of the trailer after its body.
        head_seconds: for a head to come in whole, from its first byte or that of the connection.
        answer_seconds: longest pause in taking an answer, and the time to send the rest of a
            request that was answered before its end.
        connections: open ones at once, in this process; more are closed at once.
    """

    head_bytes: int
    head_seconds: float
    answer_seconds: float
    connections: int


def is_resident(file: int, start: int, size: int) -> bool:
    """Whether the system has bytes of a file in memory, as far as a look at some of them tells."""
    byte = bytearray(1)
    try:
        return all(
            os.preadv(file, [byte], at, os.RWF_NOWAIT)
            for at in (*range(start, start + size, _PROBE), start + size - 1)
        )
    except (OSError, AttributeError):  # not there, or this system cannot tell
        return False


class _Refused(Exception):
    """Ends the parser's work; the answer to the client is in `_refusal`."""


class BoundedConnection(HttpToolsProtocol):
    """HTTP/1.1 within ConnectionLimits; `within` gives uvicorn the class to use."""

    limits: ConnectionLimits

    @classmethod
    def within(cls, limits: ConnectionLimits) -> type[BoundedConnection]:
        """The class whose connections keep these limits."""
        return type(cls.__name__, (cls,), {"limits": limits})

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._in_head = True
        self._message_over = True
        # Bytes since the head began or a body moved on; the parser keeps an unfinished field.
        self._unused_bytes = 0
        # of the head, or of the trailer after a body
        self._fields = 0
        self._field_bytes = 0
        # those that are not answered yet; the server knows the newest one alone
        self._cycles: list[RequestResponseCycle] = []
        self._refusal: HTTPStatus | None = None
        self._reason = _NOT_VALID
        self._deadline: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    # ---- what the transport reports ---------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head, unless there are too many connections."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            log.warning("%d connections are open: one more was refused", self.limits.connections)
            transport.abort()
            return
        self._close_in(self.limits.head_seconds)

    def data_received(self, data: bytes) -> None:
        """Parse what came, within the bounds."""
        self._unused_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._unused_bytes > self.limits.head_bytes and not self._message_over:
            self._refusal = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            self.send_400_response("")
        elif self._deadline is None and self._message_over and self._idle:
            # What begins no request (empty lines are skipped) has ended the idle time.
            self._close_in(self.limits.head_seconds)

    def pause_writing(self) -> None:
        """The client takes its answer slower than it is written."""
        super().pause_writing()
        self._writing = self.loop.call_later(self.limits.answer_seconds, self._abort)

    def resume_writing(self) -> None:
        """The client has taken what was waiting for it."""
        self._stop_writing()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more; no request of this client is answered."""
        self._stop_deadline()
        self._stop_writing()
        for cycle in self._cycles:
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        super().connection_lost(exc)

    # ---- what the parser reports ------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Begin to wait for the rest of this head."""
        self._close_in(self.limits.head_seconds)
        self._in_head, self._message_over = True, False
        self._moved_on()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A piece of the request target."""
        self._count(len(url), 0)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of the head. Those of a trailer count, and say nothing (RFC 9110, 6.5.1)."""
        self._count(len(name) + len(value) + _FIELD_BYTES, 1)
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is here."""
        self._stop_deadline()
        self._in_head = False
        self._moved_on()
        if len(self.pipeline) >= MAX_PIPELINED:
            self._refusal = HTTPStatus.TOO_MANY_REQUESTS
            raise _Refused
        self._need_plain_head()
        super().on_headers_complete()
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and cycle.scope is self.scope:
            self._cycles = [one for one in self._cycles if not one.response_complete]
            self._cycles.append(cycle)
            extensions: dict[str, Any] = {INTERIM: partial(_send_interim, cycle)}
            if _SENDS_FILES and self.scope["scheme"] == "http":
                cycle.__class__ = _FileSendingCycle  # uvicorn names no class for it
                extensions[SEND_FILE] = {}
            self.scope["extensions"] = extensions

    def _need_plain_head(self) -> None:
        """Refuse a head that two readers of it, a proxy and a cache, could take differently.

        It has one Host that is valid (RFC 9112, 3.2), one Authorization at most (RFC 9110, 5.3),
        and no transfer coding but `chunked` (RFC 9112, 6.1).
        """
        hosts = [value for name, value in self.headers if name == b"host"]
        codings = [value for name, value in self.headers if name == b"transfer-encoding"]
        if any(one.strip().lower() != b"chunked" for one in codings):
            self._refusal = HTTPStatus.NOT_IMPLEMENTED
            raise _Refused
        if len([name for name, _ in self.headers if name == b"authorization"]) > 1:
            self._reason = "a request has one Authorization, not several (RFC 9110, 5.3)"
        elif len(hosts) > 1:
            self._reason = "a request has one Host, not several (RFC 9112, 3.2)"
        elif not hosts and self.parser.get_http_version() != "1.0":
            self._reason = "a request of HTTP/1.1 needs a Host (RFC 9112, 3.2)"
        elif hosts and not _HOST.fullmatch(hosts[0].strip(b" \t")):
            self._reason = "Host is not a name or address, and perhaps a port (RFC 3986, 3.2.2)"
        else:
            return
        raise _Refused

    def on_body(self, body: bytes) -> None:
        """Hand on what came in one piece as it is; it would be copied twice."""
        self._unused_bytes = 0
        if not self.cycle.body:
            self.cycle.body, body = body, b""  # type: ignore[assignment]
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is here as a whole."""
        self._message_over = True
        self._moved_on()
        if self._idle:
            self._close_in(self.timeout_keep_alive)
        super().on_message_complete()

    # ---- answers ----------------------------------------------------------------------------

    def on_response_complete(self) -> None:
        """Wait for the next request; one that was answered before its end has to end soon."""
        super().on_response_complete()
        if self._idle and not self._message_over:
            self._close_in(self.limits.answer_seconds)

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that cannot be parsed or is out of bounds, and close."""
        status = self._refusal or HTTPStatus.BAD_REQUEST
        if self.transport.is_closing():
            return
        if not self._idle:
            # an answer is on its way: nothing may stand in the middle of it
            self._abort()
            return
        detail = {
            HTTPStatus.BAD_REQUEST: self._reason,
            HTTPStatus.NOT_IMPLEMENTED: "the only transfer coding is chunked (RFC 9112, 6.1)",
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: (
                f"the head of a request may have {self.limits.head_bytes} bytes "
                f"and {MAX_FIELDS} fields"
            ),
        }.get(status, status.description)
        problem = {"type": "about:blank", "title": status.phrase, "status": status.value}
        body = json.dumps(problem | {"detail": detail}).encode()
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\n"
            "content-type: application/problem+json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """No upgrade is taken (RFC 9110, 7.8), and no package that is missing would change that."""

    @property
    def _idle(self) -> bool:
        """Whether no request is in work."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def _count(self, size: int, fields: int) -> None:
        self._field_bytes += size
        self._fields += fields
        if self._field_bytes > self.limits.head_bytes or self._fields > MAX_FIELDS:
            self._refusal = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            raise _Refused

    def _moved_on(self) -> None:
        self._unused_bytes = self._field_bytes = self._fields = 0

    def _close_in(self, seconds: float) -> None:
        self._stop_deadline()
        self._deadline = self.loop.call_later(seconds, self._abort)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _stop_writing(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _abort(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()


class _FileSendingCycle(RequestResponseCycle):
    """A request whose answer may be bytes of a file, which the kernel sends."""

    async def send(self, message: Any) -> None:
        """Send a message of ASGI."""
        if message["type"] != SEND_FILE:
            await super().send(message)
            return
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        await self._send_file(message["file"], message["offset"], message["count"])
        more = message.get("more_body", False)
        await super().send({"type": "http.response.body", "body": b"", "more_body": more})

    async def _send_file(self, file: int, at: int, size: int) -> None:
        """Send bytes of a file, however many, as fast as the client takes them.

        What the kernel takes of a full socket is nothing. Then a little goes through the transport,
        which tells when it is gone, so that there is room again.
        """
        stop = at + min(size, self.expected_content_length)
        self.expected_content_length -= stop - at
        if self._is_gone:
            return
        # from here on, a write is waited for until the socket has all of it
        self.transport.set_write_buffer_limits(0)
        try:
            while at < stop:
                if self.flow.write_paused:
                    await self.flow.drain()
                if self._is_gone:
                    return
                at += self._sent_by_kernel(file, at, min(stop - at, _TURN))
                if at < stop:
                    # other connections have their turn
                    await asyncio.sleep(0)
                    data = os.pread(file, min(stop - at, _REFILL), at)
                    if not data:
                        self.transport.abort()  # it is shorter than it was: no answer is whole
                        return
                    if not self._is_gone:
                        self.transport.write(data)
                    at += len(data)
        finally:
            if not self._is_gone:
                self.transport.set_write_buffer_limits()

    @property
    def _is_gone(self) -> bool:
        """Whether nobody takes the rest; a transport that is closed answers no question."""
        return bool(self.disconnected or self.transport.is_closing())

    def _sent_by_kernel(self, file: int, at: int, size: int) -> int:
        if self.transport.get_write_buffer_size():
            return 0
        # what goes wrong here goes wrong in the transport as well, where it is noticed
        with suppress(OSError):
            to = self.transport.get_extra_info("socket").fileno()
            return os.sendfile(to, file, at, size)
        return 0


def _send_interim(
    cycle: RequestResponseCycle, status: int, reason: str, fields: Mapping[str, str]
) -> None:
    # clients of HTTP/1.0 know none (RFC 9110, 15.2)
    if cycle.response_started or cycle.disconnected or cycle.scope["http_version"] != "1.1":
        return
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {text}" for name, text in fields.items())]
    cycle.transport.write("".join(f"{line}\r\n" for line in [*lines, ""]).encode("latin-1"))
