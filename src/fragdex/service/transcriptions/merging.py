"""Slices become one transcript."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fragdex.service.transcriptions.words import Heard, Missing, Word

__all__ = ["Transcript", "in_order", "merged"]


@dataclass(frozen=True, slots=True)
class Transcript:
    """What is said in a track.

    Attributes:
        words: in order of time; none begins before the end of the one before.
        missing: spans that could not be heard.
        language: ISO 639-1, or None where nobody knows.
        engine: what heard it, for people.
    """

    words: tuple[Word, ...]
    missing: tuple[Missing, ...] = ()
    language: str | None = None
    engine: str = ""

    @property
    def text(self) -> str:
        """All of it."""
        return " ".join(word.text for word in self.words)


def in_order(words: Iterable[Word]) -> list[Word]:
    """Words by time, clamped so that none begins before the one before has ended.

    >>> [word.end_ms for word in in_order([Word("b", 90, 200), Word("a", 0, 100)])]
    [90, 200]
    """
    found: list[Word] = []
    for word in sorted(words, key=lambda w: (w.start_ms, w.end_ms)):
        word = word._replace(end_ms=max(word.start_ms, word.end_ms))
        if found and found[-1].end_ms > word.start_ms:
            found[-1] = found[-1]._replace(end_ms=max(found[-1].start_ms, word.start_ms))
        found.append(word)
    return found


def merged(slices: Sequence[Heard], language: str | None = None) -> Transcript:
    """The transcript of slices, given in any order; each number once, the last one given counts."""
    by_number = {heard.number: heard for heard in slices}
    chosen = [by_number[number] for number in sorted(by_number)]
    words = in_order(word for heard in chosen for word in heard.words)
    return Transcript(tuple(words), _joined([s for h in chosen for s in h.missing]), language)


def _joined(spans: list[Missing]) -> tuple[Missing, ...]:
    found: list[Missing] = []
    for span in sorted(spans):
        last = found[-1] if found else None
        if last is not None and last.reason == span.reason and span.start_ms <= last.end_ms + 50:
            found[-1] = last._replace(end_ms=max(last.end_ms, span.end_ms))
        else:
            found.append(span)
    return tuple(found)
