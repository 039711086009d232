"""What is said to a browser, and what it answers: the DevTools protocol over two pipes.

Messages are JSON, ended by a zero byte. A picture is taken out of its message before the rest is
parsed: a frame of base64 in JSON costs more to parse than to move.
"""

from __future__ import annotations

import binascii
import contextlib
import fcntl
import json
import os
import select
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from fragdex.service.errors import BrowserGone

__all__ = ["Pipe", "ProtocolError"]

Handler = Callable[[dict[str, Any], str | None], None]

# As much as a pipe may hold without privileges; a frame passes in a few pieces then.
_PIPE_BYTES: Final = 1 << 20
_F_SETPIPE_SZ: Final = 1031
# Nothing that is asked for is longer: a picture of the largest page is.
_LONGEST: Final = 512 << 20
_LARGE: Final = 32 << 10
_PICTURES: Final = (b'"screenshotData":"', b'"data":"')
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
        self._scanned = 0
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
        self._write(json.dumps(message, separators=(",", ":")).encode() + b"\0")
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
        while True:
            end = self._buffer.find(0, self._scanned)
            if end >= 0:
                message = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                self._scanned = 0
                self._hand_on(_parse(message))
                return True
            self._scanned = len(self._buffer)
            if not select.select([self._read_fd], [], [], seconds)[0]:
                return False
            self._fill()

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


def _parse(message: bytes) -> dict[str, Any]:
    if len(message) > _LARGE and message.startswith(b'{"id":'):
        for field in _PICTURES:
            start = message.find(field, 0, _LARGE)
            if start >= 0:
                start += len(field)
                stop = message.index(b'"', start)
                parsed: dict[str, Any] = json.loads(message[:start] + message[stop:])
                name = field[1:-3].decode()
                if name in parsed.get("result", ()):
                    picture = memoryview(message)[start:stop]
                    parsed["result"][name] = binascii.a2b_base64(picture)
                    return parsed
    whole: dict[str, Any] = json.loads(message)
    result = whole.get("result")
    if isinstance(result, Mapping):
        for field in _PICTURES:
            name = field[1:-3].decode()
            if isinstance(result.get(name), str):
                whole["result"][name] = binascii.a2b_base64(result[name])
    return whole
