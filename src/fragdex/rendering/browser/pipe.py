"""Messages to a browser, and its answers: the DevTools protocol over two pipes.

Messages are CBOR (RFC 8949), the part of it that Chromium speaks: in JSON the browser would tell
each picture in base64, which costs more than to move it. A message is an envelope: a byte string of
known length (tag 24) that holds a map; so is each map and list within. Maps and lists are of
indefinite length. Text that is not ASCII may come as a byte string of UTF-16, little-endian; bytes
have the tag 22.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import time
from collections.abc import Callable
from typing import Any, Final

from fragdex.errors import BrowserGone

HEADER_BYTES: Final = 7
"""Of an envelope, before what it holds."""

_ENVELOPE: Final = b"\xd8\x18\x5a"  # tag 24, byte string, length of 4 bytes
_UNSIGNED, _NEGATIVE, _BYTES, _TEXT = 0, 1, 2, 3
_ENCODINGS: Final = {_BYTES: "utf-16-le", _TEXT: "utf-8"}
_MAP, _LIST, _STOP = 0xBF, 0x9F, 0xFF
_MAP_BEGINS, _LIST_BEGINS = b"\xbf", b"\x9f"
_TAGGED, _ENVELOPE_TAG, _AS_BYTES = 0xD8, 0x18, 0xD6
_DOUBLE: Final = 0xFB
_PLAIN: Final[dict[int, bool | None]] = {0xF4: False, 0xF5: True, 0xF6: None}
_DIRECT: Final = 24  # numbers and lengths below it stand in the first byte
_SIZES: Final = {24: ">B", 25: ">H", 26: ">I", 27: ">Q"}
# Chromium's whole numbers; larger ones are sent as doubles, as it reads those of JSON.
_LARGEST: Final = 1 << 31


class MalformedMessage(ValueError):
    """What the browser says is no such message."""


def to_cbor(value: Any) -> bytes:
    """A value as bytes: of dicts, lists, texts, bytes, numbers, booleans and None."""
    if isinstance(value, str):
        try:
            return _headed(_TEXT, value.encode())
        except UnicodeEncodeError:  # half of a pair: pages may have such texts
            return _headed(_BYTES, value.encode("utf-16-le", "surrogatepass"))
    if isinstance(value, dict):
        parts = [_MAP_BEGINS]
        for key, one in value.items():
            parts += (to_cbor(key), to_cbor(one))
        return _enveloped(parts)
    if value is None or isinstance(value, bool):
        return b"\xf6" if value is None else b"\xf5" if value else b"\xf4"
    if isinstance(value, int) and -_LARGEST <= value < _LARGEST:
        return _head(_UNSIGNED, value) if value >= 0 else _head(_NEGATIVE, -1 - value)
    if isinstance(value, (int, float)):
        return struct.pack(">Bd", _DOUBLE, value)
    if isinstance(value, bytes):
        return bytes([_AS_BYTES]) + _headed(_BYTES, value)
    return _enveloped([_LIST_BEGINS, *map(to_cbor, value)])


def _enveloped(parts: list[bytes]) -> bytes:
    """A map or a list from its beginning and its values."""
    inside = b"".join(parts)
    return b"%b%b%b\xff" % (_ENVELOPE, (len(inside) + 1).to_bytes(4), inside)


def _head(kind: int, number: int) -> bytes:
    if number < _DIRECT:
        return bytes((kind << 5 | number,))
    size = 24 + (number > 0xFF) + (number > 0xFFFF)
    return bytes((kind << 5 | size,)) + struct.pack(_SIZES[size], number)


def _headed(kind: int, data: bytes) -> bytes:
    return _head(kind, len(data)) + data


def length_of(header: bytes | bytearray) -> int:
    """How many bytes an envelope has after its complete header.

    Raises:
        MalformedMessage: it is invalid.
    """
    if not header.startswith(_ENVELOPE):
        raise MalformedMessage("unexpected message from the browser")
    return int.from_bytes(header[len(_ENVELOPE) : HEADER_BYTES])


def from_cbor(message: bytes | memoryview) -> Any:
    """The value of a message; bytes and texts are copied.

    Raises:
        MalformedMessage: it is invalid, or has more or less than one value.
    """
    try:
        return _parsed(memoryview(message))
    except (LookupError, TypeError, ValueError, struct.error) as error:
        raise MalformedMessage("a message of the browser cannot be read") from error


def _parsed(message: memoryview) -> Any:
    at = 0
    # Maps and lists are filled from within: a page may nest them deeper than Python may call.
    whole: list[Any] = []
    items = whole
    outer: list[tuple[list[Any], bool]] = []
    is_map = False
    while at < len(message):
        first = message[at]
        if first == _TAGGED and message[at + 1] == _ENVELOPE_TAG:
            at += HEADER_BYTES
            continue
        at += 1
        if first in (_MAP, _LIST):
            outer.append((items, is_map))
            items, is_map = [], first == _MAP
            continue
        if first == _STOP:
            value: Any = dict(zip(items[::2], items[1::2], strict=True)) if is_map else items
            items, is_map = outer.pop()
        elif first in _PLAIN:
            value = _PLAIN[first]
        elif first == _DOUBLE:
            (value,) = struct.unpack_from(">d", message, at)
            at += 8
        else:
            is_bytes = first == _AS_BYTES
            if is_bytes:
                first, at = message[at], at + 1
            kind, number = first >> 5, first & 31
            if number >= _DIRECT:
                size = _SIZES[number]
                (number,) = struct.unpack_from(size, message, at)
                at += struct.calcsize(size)
            if kind in (_BYTES, _TEXT):
                data = bytes(message[at : at + number])
                at += number
                value = data if is_bytes else _text(data, kind)
                if at > len(message):
                    raise IndexError
            else:
                value = number if kind == _UNSIGNED else -1 - number
        items.append(value)
    (value,) = whole
    return value


def _text(data: bytes, kind: int) -> str:
    try:
        return data.decode(_ENCODINGS[kind], "surrogatepass")
    except UnicodeDecodeError:
        # the body of a page's request is reported as text, and need not be any
        return data.decode(_ENCODINGS[kind], "replace")


Handler = Callable[[dict[str, Any], str | None], None]

# As much as a pipe may hold without privileges; a frame passes in a few pieces then.
_PIPE_BYTES: Final = 1 << 20
_F_SETPIPE_SZ: Final = 1031
# The longest answer is a picture of the largest page.
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
        self._handlers: dict[str, list[Handler]] = {}
        self._answers: dict[int, dict[str, Any]] = {}
        self._ignored: set[int] = set()
        self._buffer = bytearray()
        self._next = 0
        self.excused = 0.0
        self.kept: Callable[[], float] = float
        self.last_call = ""
        for fd in (read_fd, write_fd):
            os.set_blocking(fd, False)
            with contextlib.suppress(OSError):
                fcntl.fcntl(fd, _F_SETPIPE_SZ, _PIPE_BYTES)

    def on(self, event: str, handler: Handler) -> None:
        """Have `handler(params, session)` called for each event of this name, after others."""
        self._handlers.setdefault(event, []).append(handler)

    def excuse(self, seconds: float) -> None:
        """Report time that we needed, not the browser."""
        self.excused += seconds

    def send(self, method: str, session: str | None = None, **params: Any) -> int:
        """Say something; the number is what to `answer` for."""
        self._next += 1
        message: dict[str, Any] = {"id": self._next, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        self._write(to_cbor(message))
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
        self.last_call = method
        return self.answer(self.send(method, session, **params), method)

    def has_answer(self, number: int) -> bool:
        """Whether something that was sent is answered."""
        return number in self._answers

    def answer(self, number: int, method: str = "") -> dict[str, Any]:
        """The answer to something that was sent."""
        self.last_call = method or self.last_call
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
        began = asked_at = time.monotonic()
        excused = self.excused
        while not done():
            self._take(_POLL_SECONDS)
            # A page that speaks without end must not escape the watch either.
            if (now := time.monotonic()) - asked_at >= _POLL_SECONDS:
                asked_at = now
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
        if len(self._buffer) < HEADER_BYTES:
            return None
        try:
            stop = HEADER_BYTES + length_of(self._buffer)
            if len(self._buffer) < stop:
                return None
            # its bytes are copied once, out of the buffer
            with memoryview(self._buffer) as buffer, buffer[:stop] as data:
                message: dict[str, Any] = from_cbor(data)
        except MalformedMessage as error:
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
            for handler in self._handlers.get(message["method"], ()):
                handler(message["params"], message.get("sessionId"))
        elif number in self._ignored:
            self._ignored.discard(number)
        else:
            self._answers[number] = message
