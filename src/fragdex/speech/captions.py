"""Captions: words become lines of readable length and speed, as WebVTT, SubRip and JSON."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any, Final

from fragdex.formats.captions_text import timing
from fragdex.formats.captions_track import Cue
from fragdex.speech.words import Transcript, Word

LINE: Final = 42
LINES: Final = 2
LONGEST_MS: Final = 7_000
SHORTEST_MS: Final = 1_000
SPEED: Final = 20
"""Characters a second that people read."""
PAUSE_MS: Final = 700
"""Silence that ends a cue."""
BETWEEN_MS: Final = 80
"""Between a cue that stays for longer and the next one, so that the change is seen."""
_ENDS: Final = tuple(".?!…。?!")
_BREAKS: Final = (*_ENDS, ",", ";", ":", "、", ",", ";", ":")
_ABBREVIATED: Final = frozenset(("mr.", "mrs.", "ms.", "dr.", "st.", "no.", "vs."))


def cues_of(words: Sequence[Word]) -> list[Cue]:
    r"""The captions of words.

    Args:
        words: in order, none beginning before the end of the one before.

    >>> cues_of([Word("hello", 0, 400), Word("there", 450, 800), Word("you", 2000, 2300)])
    [Cue(start_ms=0, end_ms=1000, text='hello there'), Cue(start_ms=2000, end_ms=3000, text='you')]
    """
    groups = list(_groups(words))
    found = []
    for number, group in enumerate(groups):
        text = spoken(group)
        start, end = group[0].start_ms, group[-1].end_ms
        wanted = max(SHORTEST_MS, len(text) * 1000 // SPEED)
        following = groups[number + 1][0].start_ms if number + 1 < len(groups) else None
        if end - start < wanted:
            end = start + wanted
            if following is not None:
                end = max(group[-1].end_ms, min(end, following - BETWEEN_MS))
        # A player shows nothing of a cue that lasts no time.
        found.append(Cue(start, max(end, start + 1), "\n".join(_lines(group))))
    return found


def spoken(words: Sequence[Word]) -> str:
    """Words as one line; scripts that write no spaces get none.

    >>> spoken([Word("你", 0, 1), Word("好", 1, 2)]), spoken([Word("a", 0, 1), Word("b", 1, 2)])
    ('你好', 'a b')
    """
    text = ""
    for word in words:
        if text and not (_unspaced(text[-1]) and _unspaced(word.text[:1])):
            text += " "
        text += word.text
    return text


def _unspaced(character: str) -> bool:
    """Whether this letter belongs to a script without spaces between words."""
    if not character or character.isascii():
        return False
    name = unicodedata.name(character, "")
    return name.startswith(("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR"))


def _groups(words: Sequence[Word]) -> Iterator[list[Word]]:
    """Words of each cue."""
    group: list[Word] = []
    for word in words:
        if group and (word.start_ms - group[-1].end_ms >= PAUSE_MS or _ends(group[-1])):
            yield group
            group = []
        group.append(word)
        while len(group) > 1 and not _fits(group):
            place = _break(group)
            yield group[:place]
            group = group[place:]
    if group:
        yield group


def _ends(word: Word) -> bool:
    return word.text.endswith(_ENDS) and word.text.lower() not in _ABBREVIATED


def _fits(group: Sequence[Word]) -> bool:
    if group[-1].end_ms - group[0].start_ms > LONGEST_MS:
        return False
    lines = _lines(group)
    return len(lines) <= LINES and all(len(line) <= LINE for line in lines)


def _break(group: Sequence[Word]) -> int:
    """Where a cue that is too long is parted best: late, after a comma, in a pause."""
    last = len(group) - 1
    first = max(1, last // 2)

    def worth(place: int) -> tuple[float, int]:
        pause = group[place].start_ms - group[place - 1].end_ms
        comma = 500 if group[place - 1].text.endswith(_BREAKS) else 0
        return (min(pause, 500) + comma + 250 * place / last, place)

    return max(range(first, last + 1), key=worth)


def _lines(group: Sequence[Word]) -> list[str]:
    """One line, or two of nearly the same length, or more where words are longer than lines."""
    whole = spoken(group)
    if len(whole) <= LINE:
        return [whole]
    best: tuple[int, list[str]] | None = None
    for place in range(1, len(group)):
        two = [spoken(group[:place]), spoken(group[place:])]
        longest = max(map(len, two))
        if best is None or longest < best[0]:
            best = (longest, two)
    if best is not None and best[0] <= LINE:
        return best[1]
    return _cut_anywhere(whole)


def _cut_anywhere(text: str) -> list[str]:
    """Lines of text that no break between words makes short enough."""
    lines: list[str] = []
    while len(text) > LINE:
        place = text.rfind(" ", 1, LINE + 1)
        place = LINE if place <= 0 else place
        lines.append(text[:place].strip())
        text = text[place:].strip()
    return [*lines, text] if text else lines


def as_webvtt(transcript: Transcript) -> str:
    r"""As WebVTT (W3C, WebVTT: The Web Video Text Tracks Format, 4.1).

    >>> as_webvtt(Transcript((Word("a<b", 0, 1000),)))
    'WEBVTT\n\n00:00:00.000 --> 00:00:01.000\na&lt;b\n'
    """
    blocks = ["WEBVTT\n"]
    for cue in cues_of(transcript.words):
        text = escape(_no_empty_lines(cue), quote=False)
        blocks.append(f"{timing(cue.start_ms, cue.end_ms)}\n{text}\n")
    return "\n".join(blocks)


def as_srt(transcript: Transcript) -> str:
    r"""As SubRip.

    >>> as_srt(Transcript((Word("hello", 0, 1000),)))
    '1\n00:00:00,000 --> 00:00:01,000\nhello\n'
    """
    blocks = []
    for number, cue in enumerate(cues_of(transcript.words), 1):
        times = timing(cue.start_ms, cue.end_ms, ",")
        text = _no_empty_lines(cue).replace("-->", "→")
        blocks.append(f"{number}\n{times}\n{text}\n")
    return "\n".join(blocks)


def as_document(words: Sequence[Word]) -> dict[str, Any]:
    """Words and segments as published players read them: times are seconds of the presentation.

    >>> as_document([Word("hi", 0, 500, 0.9)])["word_segments"]
    [{'text': 'hi', 'start': 0.0, 'end': 0.5, 'confidence': 0.9, 'time_confidence': None}]
    """
    return {
        "segments": [
            {
                "start": cue.start_ms / 1000,
                "end": cue.end_ms / 1000,
                "text": cue.text.replace("\n", " "),
            }
            for cue in cues_of(words)
        ],
        "word_segments": [
            {
                "text": word.text,
                "start": word.start_ms / 1000,
                "end": word.end_ms / 1000,
                "confidence": word.confidence,
                "time_confidence": word.time_confidence,
            }
            for word in words
        ],
    }


def as_json(transcript: Transcript) -> str:
    """`as_document` of the whole, with its language, its text and what could not be heard."""
    document = {
        "language": transcript.language,
        "text": spoken(transcript.words),
        **as_document(transcript.words),
        "missing": [
            {"start": span.start_ms / 1000, "end": span.end_ms / 1000, "reason": span.reason}
            for span in transcript.missing
        ],
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


FORMS: Final[dict[str, tuple[Callable[[Transcript], str], str]]] = {
    "vtt": (as_webvtt, "text/vtt"),
    "srt": (as_srt, "application/x-subrip"),
    "json": (as_json, "application/json"),
}
"""By the ending of a name: what writes it, and its media type."""


def _no_empty_lines(cue: Cue) -> str:
    """An empty line would end the cue."""
    return "\n".join(line for line in cue.text.splitlines() if line.strip())
