"""A word, and what was heard in a slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["Heard", "Missing", "Word"]


class Word(NamedTuple):
    """A word from `start_ms` (inclusive) to `end_ms` (exclusive).

    Attributes:
        text: as it is shown, without spaces around it.
        confidence: 0 to 1, or None where the engine gives none.
    """

    text: str
    start_ms: int
    end_ms: int
    confidence: float | None = None

    def later(self, ms: int) -> Word:
        """The same word at another time.

        >>> Word("hello", 0, 400).later(1000).start_ms
        1000
        """
        return self._replace(start_ms=self.start_ms + ms, end_ms=self.end_ms + ms)


class Missing(NamedTuple):
    """A span that could not be heard, and why: damaged, encrypted, missing from the file."""

    start_ms: int
    end_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class Heard:
    """What came of a slice.

    Attributes:
        number: of the slice, from 0.
        words: in order of time.
        missing: spans of it without sound that could be decoded.
        utterances: how many were given to the engine.
        bytes_read: of the file, so far, by the reader that heard it.
    """

    number: int
    words: tuple[Word, ...]
    missing: tuple[Missing, ...] = ()
    utterances: int = 0
    bytes_read: int = 0

    def as_json(self) -> dict[str, Any]:
        """As plain values.

        >>> Heard.of_json(Heard(0, (Word("a", 0, 10),)).as_json()).words[0].text
        'a'
        """
        return {
            "number": self.number,
            "words": [list(word) for word in self.words],
            "missing": [list(span) for span in self.missing],
            "utterances": self.utterances,
            "bytes_read": self.bytes_read,
        }

    @classmethod
    def of_json(cls, plain: Mapping[str, Any]) -> Heard:
        """The same again."""
        words: Sequence[Any] = plain["words"]
        return cls(
            plain["number"],
            tuple(Word(*word) for word in words),
            tuple(Missing(*span) for span in plain["missing"]),
            plain["utterances"],
            plain["bytes_read"],
        )
