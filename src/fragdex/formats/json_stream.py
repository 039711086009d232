"""JSON read piece by piece: large objects and lists are walked, small values are decoded whole.

The memory it takes is bounded by `MAX_VALUE_SIZE`, whatever the length of the text.
"""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from fragdex.errors import DamagedIndex, LimitExceeded

__all__ = ["MAX_VALUE_SIZE", "JsonStream"]

MAX_VALUE_SIZE = 1 << 20
"""Characters of one value that is decoded whole, such as one segment: real ones take 100."""

SPACE = " \t\n\r"


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is larger than any number of 64 bits")
    return number


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)


class JsonStream:
    """A JSON text (RFC 8259, in UTF-8) of which pieces come one after the other.

    >>> stream = JsonStream([b'{"a": [1, 2', b'2], "b": {}}'])
    >>> for key in stream.names():
    ...     print(key, list(stream.elements()) if key == "a" else stream.value())
    a [1, 22]
    b {}
    >>> stream.end()
    """

    def __init__(self, pieces: Iterable[bytes | bytearray | memoryview]) -> None:
        self._pieces = iter(pieces)
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._scan = _DECODER.raw_decode
        self._text, self._place, self._ended = "", 0, False
        self._before = 0
        self.pointer: list[str | int] = []

    def names(self) -> Iterator[str]:
        """The keys of the object that stands next; take or walk its value before the next key.

        Raises:
            DamagedIndex: it is no object, or a key stands in it twice.
        """
        self._expect("{", "an object")
        seen: set[str] = set()
        self.pointer.append("")
        while True:
            if self._peek() == "}" and not seen:
                break
            key = self.value()
            if not isinstance(key, str):
                self.fail("a key in quotes", key)
            self.pointer[-1] = key
            if key in seen:
                self.fail("each key once", "the same key again")
            seen.add(key)
            self._expect(":", "a colon")
            yield key
            if self._next_of(",}") == "}":
                self.pointer.pop()
                return
        self._place += 1
        self.pointer.pop()

    def elements(self) -> Iterator[Any]:
        """The values of the list that stands next, each decoded whole.

        Raises:
            DamagedIndex: it is no list.
        """
        self._expect("[", "a list")
        self.pointer.append(0)
        number = 0
        if self._peek() == "]":
            self._place += 1
        else:
            while True:
                self.pointer[-1] = number
                yield self.value()
                number += 1
                if self._next_of(",]") == "]":
                    break
        self.pointer.pop()

    def value(self) -> Any:
        """The value that stands next, decoded whole.

        Raises:
            DamagedIndex: it is no JSON.
            LimitExceeded: it takes more than MAX_VALUE_SIZE characters.
        """
        self._peek()
        wanted = 256
        while True:
            try:
                value, stop = self._scan(self._text, self._place)
            except RecursionError:
                self.fail("values nested a few times", "hundreds of levels")
            except ValueError as error:
                if self._ended:
                    self.fail("JSON", f"something else ({error})")
            else:
                # A number that reaches to the end of what is there may go on.
                if self._ended or stop < len(self._text):
                    self._place = stop
                    return value
            if len(self._text) - self._place > MAX_VALUE_SIZE:
                raise LimitExceeded(
                    "one value is too long",
                    path=self.where(),
                    offset=self.position(),
                    expected=f"at most {MAX_VALUE_SIZE} characters",
                    found="more",
                )
            # Doubled each time, so that decoding again and again stays linear.
            wanted *= 2
            self._fill(wanted)

    def end(self) -> None:
        """Nothing but space may follow.

        Raises:
            DamagedIndex: something does.
        """
        if self._peek():
            self.fail("the end", self._text[self._place : self._place + 20])

    def where(self) -> str:
        """JSON pointer (RFC 6901) of the value that is being read."""
        return "".join(
            "/" + str(part).replace("~", "~0").replace("/", "~1") for part in self.pointer
        )

    def position(self) -> int:
        """Characters before the place that is being read; bytes where the text is ASCII."""
        return self._before + self._place

    def fail(self, expected: object, found: object) -> NoReturn:
        """Raise the error for what stands at this place."""
        shown = found if isinstance(found, str) else repr(found)
        raise DamagedIndex(
            "the index cannot be read",
            path=self.where() or "/",
            offset=self.position(),
            expected=expected,
            found=shown if len(shown) <= 60 else shown[:57] + "...",
        )

    def _fill(self, wanted: int) -> None:
        """Have at least so many characters in front, or all that are left."""
        parts = [self._text[self._place :]]
        length = len(parts[0])
        try:
            while length < wanted and not self._ended:
                piece = next(self._pieces, None)
                self._ended = piece is None
                text = self._decode(b"" if piece is None else piece, self._ended)
                parts.append(text)
                length += len(text)
        except UnicodeDecodeError as error:
            self.fail("UTF-8", f"the byte {error.object[error.start]:#04x}")
        self._before += self._place
        self._text, self._place = "".join(parts), 0

    def _peek(self) -> str:
        """The next character that is no space, or "" at the end."""
        while True:
            text, place = self._text, self._place
            while place < len(text) and text[place] in SPACE:
                place += 1
            self._place = place
            if place < len(text):
                return text[place]
            if self._ended:
                return ""
            self._fill(1)

    def _expect(self, character: str, name: str) -> None:
        if self._peek() != character:
            self.fail(name, self._text[self._place : self._place + 20] or "the end")
        self._place += 1

    def _next_of(self, characters: str) -> str:
        found = self._peek()
        if not found or found not in characters:
            self.fail(
                f"one of {characters}", self._text[self._place : self._place + 20] or "the end"
            )
        self._place += 1
        return found
