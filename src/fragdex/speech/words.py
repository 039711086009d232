"""A word, what was heard in a slice, and what slices say together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, Final, NamedTuple

from fragdex.record import record

SENTENCE_ENDS: Final = tuple(".?!…。?!")
_ABBREVIATED: Final = frozenset(("mr.", "mrs.", "ms.", "dr.", "st.", "no.", "vs.", "etc."))
_INITIALS: Final = re.compile(r"(?:[a-z]\.)+", re.IGNORECASE)
_JOIN_MS: Final = 2_000
"""Between two words that may be said in one breath."""


class Word(NamedTuple):
    """A word from `start_ms` (inclusive) to `end_ms` (exclusive).

    Attributes:
        text: as it is shown, without spaces around it.
        confidence: that it is this word, 0 to 1; None where the engine gives none.
        time_confidence: that its time is right, 0 to 1; None where nobody says.
        doubted: whether the sound around it does not bear out what was heard: mostly speech of
            another language, or a model that repeats itself.
        speaker: who says it, S1, S2 …; None where nobody asked.
        language: ISO 639-1, where an engine has found several in the track.
    """

    text: str
    start_ms: int
    end_ms: int
    confidence: float | None = None
    time_confidence: float | None = None
    doubted: bool = False
    speaker: str | None = None
    language: str | None = None

    def later(self, ms: int) -> Word:
        """The same word at another time."""
        return self._replace(start_ms=self.start_ms + ms, end_ms=self.end_ms + ms)


class SpanNote(NamedTuple):
    """A span of a transcript that was not heard, or whose words are doubted or nobody's, and why.

    Attributes:
        reason: damaged, encrypted, missing from the file; why its words were probably not said; or
            that nobody knows who says them.
    """

    start_ms: int
    end_ms: int
    reason: str


class LanguageSpan(NamedTuple):
    """A span of a transcript, and the language (ISO 639-1) in which its words were heard."""

    start_ms: int
    end_ms: int
    language: str


@record(frozen=True, slots=True)
class SliceTranscript:
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
    missing: tuple[SpanNote, ...] = ()
    utterances: int = 0
    bytes_read: int = 0

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "number": self.number,
            "words": [list(word) for word in self.words],
            "missing": [list(span) for span in self.missing],
            "utterances": self.utterances,
            "bytes_read": self.bytes_read,
        }

    @classmethod
    def of_json(cls, plain: Mapping[str, Any]) -> SliceTranscript:
        """The same again."""
        words = tuple(Word(*word) for word in plain["words"])
        missing = tuple(SpanNote(*span) for span in plain["missing"])
        return cls(**{**plain, "words": words, "missing": missing})


@record(frozen=True, slots=True)
class Transcript:
    """The speech of a track.

    Attributes:
        words: in order of time; none begins before the end of the one before.
        missing: spans that could not be heard.
        language: ISO 639-1, that of most of the speech; None where nobody knows.
        engine: what heard it, for people.
        names: of speakers, by S1, S2 …; those without a name are left out.
        attributed: whether somebody has asked who says the words, and it was looked for.
    """

    words: tuple[Word, ...]
    missing: tuple[SpanNote, ...] = ()
    language: str | None = None
    engine: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    attributed: bool = False

    @property
    def speakers(self) -> list[str]:
        """Who speaks, in the order in which they first do."""
        return list(dict.fromkeys(word.speaker for word in self.words if word.speaker))

    @property
    def text(self) -> str:
        """All words, with a space between two."""
        return " ".join(word.text for word in self.words)

    @property
    def doubted(self) -> tuple[SpanNote, ...]:
        """Spans in which words are doubted, in order of time."""
        return self._spans(_doubt_of(word, self.language) for word in self.words)

    @property
    def unattributed(self) -> tuple[SpanNote, ...]:
        """Spans whose words have no speaker though somebody has asked, in order of time."""
        nobody = "no voice was found here" if self.attributed else None
        return self._spans(None if word.speaker else nobody for word in self.words)

    @property
    def languages(self) -> tuple[LanguageSpan, ...]:
        """Spans in which one language is spoken, in order of time; none where all is in one."""
        spans = self._spans(word.language for word in self.words)
        return tuple(LanguageSpan(*span) for span in spans) if len(spans) > 1 else ()

    def _spans(self, reasons: Iterable[str | None]) -> tuple[SpanNote, ...]:
        """One for words in a row with the same reason, of which each word has one or none."""
        pairs = groupby(zip(self.words, reasons, strict=True), itemgetter(1))
        runs = [(reason, [word for word, _ in pairs_alike]) for reason, pairs_alike in pairs]
        return tuple(
            SpanNote(words[0].start_ms, words[-1].end_ms, reason)
            for reason, words in runs
            if reason is not None
        )

    def without_doubted(self) -> Transcript:
        """The same without doubted words."""
        return replace(self, words=tuple(word for word in self.words if not word.doubted))


def _doubt_of(word: Word, language: str | None) -> str | None:
    """Why a word is doubted, if it is."""
    language = word.language or language
    name = "English" if language in (None, "en") else f"the language {language}"
    return f"this does not sound like {name}" if word.doubted else None


def ends_sentence(word: Word) -> bool:
    """Whether a sentence ends with a word."""
    text = word.text.lower()
    return (
        text.endswith(SENTENCE_ENDS) and text not in _ABBREVIATED and not _INITIALS.fullmatch(text)
    )


def capitalized(words: Sequence[Word]) -> list[Word]:
    """Words with a capital after the end of a sentence.

    An engine hears some seconds at once and ends them with a full stop; what it hears next may
    begin in the middle of one.
    """
    result = list(words[:1])
    for before, word in pairwise(words):
        text = word.text
        if (
            text.islower()
            and ends_sentence(before)
            and not before.text.endswith(("...", "…"))
            and word.start_ms - before.end_ms < _JOIN_MS
        ):
            word = word._replace(text=text[0].upper() + text[1:])
        result.append(word)
    return result


def in_order(words: Iterable[Word]) -> list[Word]:
    """Words by time, clamped so that none begins before the one before has ended."""
    ordered: list[Word] = []
    for word in sorted(words, key=lambda w: (w.start_ms, w.end_ms)):
        word = word._replace(end_ms=max(word.start_ms, word.end_ms))
        if ordered and ordered[-1].end_ms > word.start_ms:
            ordered[-1] = ordered[-1]._replace(end_ms=max(ordered[-1].start_ms, word.start_ms))
        ordered.append(word)
    return ordered


def merged(
    slices: Sequence[SliceTranscript],
    language: str | None = None,
    *,
    requested: str | None = None,
) -> Transcript:
    """The transcript of slices, given in any order; each number once, the last one given counts.

    Args:
        slices: what was heard.
        language: as the plan has it: requested, or what the engine says. Where words have
            languages of their own, that of most of the speech counts.
        requested: by whoever wants the words. What an engine says is forgotten where most of the
            words are doubted.
    """
    by_number = {heard.number: heard for heard in slices}
    chosen = [by_number[number] for number in sorted(by_number)]
    words = capitalized(in_order(word for heard in chosen for word in heard.words))
    lasts: Counter[str] = Counter()
    for word in words:
        if word.language is not None:
            lasts[word.language] += word.end_ms - word.start_ms
    if lasts:
        language = lasts.most_common(1)[0][0]
    if requested is None and 2 * sum(word.doubted for word in words) > len(words):
        language, words = None, [word._replace(language=None) for word in words]
    missing = _joined([span for heard in chosen for span in heard.missing])
    return Transcript(tuple(words), missing, requested or language)


def _joined(spans: list[SpanNote]) -> tuple[SpanNote, ...]:
    gaps: list[SpanNote] = []
    for span in sorted(spans):
        last = gaps[-1] if gaps else None
        if last is not None and last.reason == span.reason and span.start_ms <= last.end_ms + 50:
            gaps[-1] = last._replace(end_ms=max(last.end_ms, span.end_ms))
        else:
            gaps.append(span)
    return tuple(gaps)
