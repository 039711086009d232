"""What is said to a browser, and what it answers: the DevTools protocol over two pipes.

Messages are CBOR: in JSON the browser would tell each picture in base64, which costs more than to
move it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import time
from collections.abc import Callable
from typing import Any, Final

from fragdex.errors import BrowserGone
from fragdex.rendering.browser import cbor

__all__ = ["Pipe", "ProtocolError"]

Handler = Callable[[dict[str, Any], str | None], None]

# As much as a pipe may hold without privileges; a frame passes in a few pieces then.
_PIPE_BYTES: Final = 1 << 20
_F_SETPIPE_SZ: Final = 1031
# Nothing that is asked for is longer: a picture of the largest page is.
_LONGEST: Final = 512 << 20
_POLL_SECONDS: Final = 0.25


class ProtocolError(Exception):
    """The browser answered a command with an error."""


class Pipe:
    """One end of the two pipes; one thread at a time.

    Args:
        read_fd: from the browser.
        write_fd: to the browser.
        wait: called several times a second while nothing arrives, with the time when the waiting
            began (of the monotonic clock) and its seconds; what it raises ends the waiting. On a
            machine that keeps us from running, the first call comes late.
    """

    def __init__(
        self,
        read_fd: int,
        write_fd: int,
        wait: Callable[[float, float], None] = lambda *_: None,
    ) -> None:
        self._read_fd, self._write_fd = read_fd, write_fd
        self.wait = wait
        self._handlers: dict[str, Handler] = {}
        self._answers: dict[int, dict[str, Any]] = {}
        self._ignored: set[int] = set()
        self._buffer = bytearray()
        self._next = 0
        self.excused = 0.0
        for fd in (read_fd, write_fd):
            os.set_blocking(fd, False)
            with contextlib.suppress(OSError):
                fcntl.fcntl(fd, _F_SETPIPE_SZ, _PIPE_BYTES)

    def on(self, event: str, handler: Handler) -> None:
        """Have `handler(params, session)` called for each event of this name."""
        self._handlers[event] = handler

    def excuse(self, seconds: float) -> None:
        """Tell of time that the browser did not need, but we."""
        self.excused += seconds

    def send(self, method: str, session: str | None = None, **params: Any) -> int:
        """Say something; the number is what to `answer` for."""
        self._next += 1
        message: dict[str, Any] = {"id": self._next, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        self._write(cbor.built(message))
        return self._next

    def post(self, method: str, session: str | None = None, **params: Any) -> None:
        """Say something whose answer nobody waits for."""
        self._ignored.add(self.send(method, session, **params))

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Say something and wait for the answer.

        Raises:
            ProtocolError: the browser refuses it.
            BrowserGone: the pipe is closed.
        """
        return self.answer(self.send(method, session, **params), method)

    def answer(self, number: int, method: str = "") -> dict[str, Any]:
        """The answer to something that was sent."""
        self.until(lambda: number in self._answers)
        message = self._answers.pop(number)
        if "error" in message:
            raise ProtocolError(f"{method}: {message['error'].get('message')}")
        result: dict[str, Any] = message["result"]
        return result

    def answered(self, number: int) -> bool:
        """Whether the answer is here already."""
        return number in self._answers

    def until(self, done: Callable[[], object]) -> None:
        """Take in messages until something is so."""
        began = asked = time.monotonic()
        excused = self.excused
        while not done():
            self._take(_POLL_SECONDS)
            # A page that speaks without end must not escape the watch either.
            if (now := time.monotonic()) - asked >= _POLL_SECONDS:
                asked = now
                if not done():
                    self.wait(began, now - began - (self.excused - excused))

    def listen(self, seconds: float, done: Callable[[], object] = lambda: False) -> None:
        """Take in messages for a while, or until something is so."""
        stop = time.monotonic() + seconds
        while (left := stop - time.monotonic()) > 0 and not done():
            self._take(left)

    def close(self) -> None:
        """Close both ends: the browser ends itself."""
        for fd in (self._read_fd, self._write_fd):
            with contextlib.suppress(OSError):
                os.close(fd)

    def _write(self, data: bytes) -> None:
        # The browser may be waiting for us to read while we write: both are done in turn.
        left = memoryview(data)
        began = time.monotonic()
        while left:
            try:
                left = left[os.write(self._write_fd, left) :]
            except BlockingIOError:
                readable, _, _ = select.select([self._read_fd], [self._write_fd], [], _POLL_SECONDS)
                if readable:
                    self._fill()
                else:
                    self.wait(began, time.monotonic() - began)
            except OSError as error:
                raise BrowserGone("the browser ended") from error

    def _take(self, seconds: float) -> bool:
        """Take in one message, if one comes in time."""
        while (message := self._message()) is None:
            if not select.select([self._read_fd], [], [], seconds)[0]:
                return False
            self._fill()
        self._hand_on(message)
        return True

    def _message(self) -> dict[str, Any] | None:
        """The first message that is here whole."""
        if len(self._buffer) < cbor.HEADER_BYTES:
            return None
        try:
            stop = cbor.HEADER_BYTES + cbor.length_of(self._buffer)
            if len(self._buffer) < stop:
                return None
            # its bytes are copied once, out of the buffer
            with memoryview(self._buffer) as buffer, buffer[:stop] as data:
                message: dict[str, Any] = cbor.parsed(data)
        except cbor.MalformedMessage as error:
            raise BrowserGone(str(error)) from error
        del self._buffer[:stop]
        return message

    def _fill(self) -> None:
        try:
            data = os.read(self._read_fd, _PIPE_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            raise BrowserGone("the browser ended") from error
        if not data or len(self._buffer) > _LONGEST:
            raise BrowserGone("the browser ended" if not data else "the browser says too much")
        self._buffer += data

    def _hand_on(self, message: dict[str, Any]) -> None:
        number = message.get("id")
        if number is None:
            handler = self._handlers.get(message["method"])
            if handler is not None:
                handler(message["params"], message.get("sessionId"))
        elif number in self._ignored:
            self._ignored.discard(number)
        else:
            self._answers[number] = message
