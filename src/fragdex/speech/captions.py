"""Captions: words become lines of readable length and speed, as WebVTT, SubRip, JSON or a track."""

from __future__ import annotations

import json
import math
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

import numpy as np

from fragdex import Source, index
from fragdex.muxing.captions import CaptionCue, timing, with_captions
from fragdex.record import record
from fragdex.speech.words import SENTENCE_ENDS, SpanNote, Transcript, Word, ends_sentence

PAUSE_MS: Final = 700
"""Silence that ends a cue."""
BETWEEN_MS: Final = 80
"""Between a cue that stays for longer and the next one, so that the change is seen."""
CUT_MS: Final = 300
"""How far a cue is moved to begin or end at a cut of the picture."""
_BREAKS: Final = (*SENTENCE_ENDS, ",", ";", ":", "、", ",", ";", ":")
_SHORT_WORD: Final = 6
"""Characters of a word that does not stand in a line by itself."""
_BEGIN_CLAUSES: Final = frozenset((
    "and", "but", "or", "nor", "so", "yet", "because", "although", "though", "while", "when",
    "where", "if", "unless", "until", "since", "that", "which", "who", "whom", "whose", "than",
    "as", "with", "without", "for", "from", "to", "in", "on", "at", "by", "into", "of", "about",
))  # fmt: skip
"""English words that a line may well begin with."""
_NEVER_LAST: Final = frozenset((
    "a", "an", "the", "my", "your", "his", "her", "its", "our", "their", "this", "these", "those",
    "and", "but", "or", "of", "to", "in", "on", "at", "by", "for", "from", "with", "very", "mr.",
    "mrs.", "ms.", "dr.", "is", "are", "was", "were", "be", "been", "will", "would", "can",
    "could", "should",
))  # fmt: skip
"""English words that a line should not end with."""


@record(frozen=True, slots=True)
class CaptionLayout:
    """How captions are laid out, in the terms of subtitling guidelines.

    Attributes:
        line_length: characters of a line.
        max_lines: of a cue.
        reading_speed: characters a second that people read: cues stay for so long, where the next
            one leaves the time.
        leave_out_doubted: whether words that the sound does not bear out are left out.
        cuts_ms: where the picture changes (`transcribe.cuts_of`): cues begin and end there where
            that is up to 300 ms away, all of their words stay in them, and they can be read.
        min_duration_ms, max_duration_ms: of a cue. A sentence shorter than the least is shown with
            the next one; one longer than the most is parted.

    Raises:
        ValueError: a number that no caption can keep to.
    """

    line_length: int = 42
    max_lines: int = 2
    reading_speed: float = 20
    min_duration_ms: int = 1_000
    max_duration_ms: int = 7_000
    leave_out_doubted: bool = False
    cuts_ms: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name, (low, high) in BOUNDS.items():
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name} is {getattr(self, name)}: expected {low:,} to {high:,}")
        if self.min_duration_ms > self.max_duration_ms:
            raise ValueError("min_duration_ms is more than max_duration_ms")


BOUNDS: Final = {
    "line_length": (10, 200), "max_lines": (1, 4), "reading_speed": (5, 100),
    "min_duration_ms": (0, 10_000), "max_duration_ms": (1_000, 60_000),
}  # fmt: skip
"""Least and most of each attribute of a layout."""
USUAL: Final = CaptionLayout()


def cues_of(words: Sequence[Word], layout: CaptionLayout = USUAL) -> list[CaptionCue]:
    """The captions of words.

    Args:
        words: in order, none beginning before the end of the one before.
    """
    return [cue for cue, _ in _cues(_shown(words, layout), layout)]


def _shown(words: Sequence[Word], layout: CaptionLayout) -> Sequence[Word]:
    """The words that a layout does not leave out."""
    return [word for word in words if not (layout.leave_out_doubted and word.doubted)]


def _cues(words: Sequence[Word], layout: CaptionLayout) -> Iterator[tuple[CaptionCue, str | None]]:
    """The captions of words, each of one speaker, and who that is."""
    groups = _readable(_groups(words, layout), layout)
    cues = []
    for number, group in enumerate(groups):
        start, end = group[0].start_ms, group[-1].end_ms
        wanted = _wanted(spoken(group), layout)
        following = groups[number + 1][0].start_ms if number + 1 < len(groups) else None
        if end - start < wanted:
            end = start + wanted
            if following is not None:
                end = max(group[-1].end_ms, min(end, following - BETWEEN_MS))
        # A player shows nothing of a cue that lasts no time.
        cues.append(CaptionCue(start, max(end, start + 1), "\n".join(_lines(group, layout))))
    cues = at_cuts(cues, [group[-1].end_ms for group in groups], layout)
    yield from zip(cues, (group[0].speaker for group in groups), strict=True)


def _wanted(text: str, layout: CaptionLayout) -> int:
    """Milliseconds in which a text can be read."""
    return max(layout.min_duration_ms, round(len(text) * 1000 / layout.reading_speed))


def at_cuts(
    cues: Sequence[CaptionCue], spoken_until: Sequence[int], layout: CaptionLayout
) -> list[CaptionCue]:
    """Cues that begin and end at cuts of the picture (`layout.cuts_ms`) where one is near.

    Args:
        spoken_until: milliseconds at which the last word of each ends.
    """
    cuts = sorted(layout.cuts_ms)
    moved: list[CaptionCue] = []
    for number, (cue, said) in enumerate(zip(cues, spoken_until, strict=True)):
        start, end = cue[:2]
        before = moved[-1].end_ms if moved else 0
        following = cues[number + 1].start_ms if number + 1 < len(cues) else math.inf
        start = _cut_near(cuts, start, max(before, end - layout.max_duration_ms), start)
        least = start + min(end - start, _wanted(cue.text, layout))
        most = max(end, start + layout.max_duration_ms)
        end = _cut_near(cuts, end, max(said, least), min(following, most))
        moved.append(CaptionCue(start, end, cue.text))
    return moved


def _cut_near(cuts: Sequence[int], time: int, low: float, high: float) -> int:
    """The cut from `low` to `high` (both inclusive) that is nearest to a time; none: the time."""
    first = bisect_left(cuts, max(low, time - CUT_MS))
    last = bisect_right(cuts, min(high, time + CUT_MS))
    return min(cuts[first:last], key=lambda cut: abs(cut - time), default=time)


def marked(transcript: Transcript) -> list[Word]:
    """Words for captions that can only show text: who speaks stands where another one begins.

    By name, or as a dash.
    """
    if len(transcript.speakers) < 2 and not transcript.names:
        return list(transcript.words)
    words, before = [], None
    for word in transcript.words:
        if word.speaker is not None and word.speaker != before:
            name = transcript.names.get(word.speaker)
            word = word._replace(text=f"{f'{name}:' if name else '-'} {word.text}")
        before = word.speaker
        words.append(word)
    return words


def spoken(words: Sequence[Word]) -> str:
    """Words as one line; scripts that write no spaces get none."""
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


def _groups(words: Sequence[Word], layout: CaptionLayout) -> Iterator[list[Word]]:
    """Words of each cue."""
    group: list[Word] = []
    for word in words:
        if group and (
            _parts(group[-1], word)
            or (
                ends_sentence(group[-1])
                and word.start_ms - group[0].start_ms >= layout.min_duration_ms
            )
        ):
            yield group
            group = []
        group.append(word)
        while len(group) > 1 and not _fits(group, layout):
            place = _break(group)
            yield group[:place]
            group = group[place:]
    if group:
        yield group


def _readable(groups: Iterable[list[Word]], layout: CaptionLayout) -> list[list[Word]]:
    """Cues that leave no time to be read, or are one short word, put together with those before.

    Where they do not fit together, a short word takes some of the words before it along.
    """
    cues: list[list[Word]] = []
    for group in groups:
        before = cues[-1] if cues else []
        scrap = (
            len(group) == 1
            and _is_short(spoken(group))
            and before
            and not ends_sentence(before[-1])
        )
        if (
            before
            and not _parts(before[-1], group[0])
            and (scrap or _is_fast(before, group, layout))
        ):
            both = [*before, *group]
            if _fits(both, layout):
                cues[-1] = both
                continue
            if scrap and len(both) > 3:
                place = _break(both[:-1])
                if _fits(both[place:], layout):
                    cues[-1], group = both[:place], both[place:]
        cues.append(group)
    return cues


def _parts(before: Word, after: Word) -> bool:
    """Whether two words never stand in one cue."""
    return after.start_ms - before.end_ms >= PAUSE_MS or before.speaker != after.speaker


def _is_fast(group: Sequence[Word], after: Sequence[Word], layout: CaptionLayout) -> bool:
    """Whether a cue is gone before it can be read."""
    lasts = max(group[-1].end_ms, after[0].start_ms - BETWEEN_MS) - group[0].start_ms
    return len(spoken(group)) * 1000 > lasts * layout.reading_speed


def _is_short(text: str) -> bool:
    return len(text) <= _SHORT_WORD and " " not in text


def _fits(group: Sequence[Word], layout: CaptionLayout) -> bool:
    if group[-1].end_ms - group[0].start_ms > layout.max_duration_ms:
        return False
    lines = _lines(group, layout)
    return len(lines) <= layout.max_lines and all(len(line) <= layout.line_length for line in lines)


def _clause(before: Word, after: Word) -> int:
    """How good it is to part two words, in milliseconds of a pause that would be as good."""
    if before.text.endswith(_BREAKS):
        return 500
    if before.text.lower() in _NEVER_LAST:
        return -400
    return 250 if after.text.lower() in _BEGIN_CLAUSES else 0


def _break(group: Sequence[Word]) -> int:
    """Where a cue that is too long is parted best: late, between clauses, in a pause."""
    last = len(group) - 1
    first = max(1, last // 2)

    def worth(place: int) -> tuple[float, int]:
        before, after = group[place - 1], group[place]
        pause = min(after.start_ms - before.end_ms, 500)
        return (pause + _clause(before, after) + 250 * place / last, place)

    return max(range(first, last + 1), key=worth)


_LETTER_MS: Final = 15
"""What a character by which a line is longer than the other is worth, in the same measure."""
_SCRAP_MS: Final = 10_000
"""The same of a line of one short word: any other break is better."""


def _lines(group: Sequence[Word], layout: CaptionLayout) -> list[str]:
    """As few lines as it takes, of nearly the same length, parted between clauses.

    More lines than the layout allows where words do not fit.
    """
    whole = spoken(group)
    if len(whole) <= layout.line_length:
        return [whole]
    for count in range(2, layout.max_lines + 1):
        if lines := _parted(group, count, layout.line_length):
            return lines
    return _cut_anywhere(whole, layout.line_length)


def _parted(group: Sequence[Word], count: int, length: int) -> list[str]:
    """The best lines, so many; none where words do not fit into them."""
    if count == 1:
        whole = spoken(group)
        return [whole] if len(whole) <= length else []
    best: tuple[float, list[str]] | None = None
    for place in range(1, len(group) - count + 2):
        first = spoken(group[:place])
        if len(first) > length:
            break
        rest = _parted(group[place:], count - 1, length)
        if not rest:
            continue
        uneven = max(map(len, (first, *rest))) - min(map(len, (first, *rest)))
        worth = _clause(group[place - 1], group[place]) - _LETTER_MS * uneven
        worth -= _SCRAP_MS * any(map(_is_short, (first, *rest)))
        if best is None or worth > best[0]:
            best = (worth, [first, *rest])
    return best[1] if best else []


def _cut_anywhere(text: str, length: int) -> list[str]:
    """Lines of text that no break between words makes short enough."""
    lines: list[str] = []
    while len(text) > length:
        place = text.rfind(" ", 1, length + 1)
        place = length if place <= 0 else place
        lines.append(text[:place].strip())
        text = text[place:].strip()
    return [*lines, text] if text else lines


def as_webvtt(transcript: Transcript, layout: CaptionLayout = USUAL) -> str:
    """As WebVTT (W3C, WebVTT: The Web Video Text Tracks Format, 4.1), speakers as its voices."""
    blocks = ["WEBVTT\n"]
    for cue, speaker in _cues(_shown(transcript.words, layout), layout):
        text = escape(_no_empty_lines(cue), quote=False)
        if speaker is not None:
            text = f"<v {escape(transcript.names.get(speaker, speaker), quote=False)}>{text}"
        blocks.append(f"{timing(cue.start_ms, cue.end_ms)}\n{text}\n")
    return "\n".join(blocks)


def as_srt(transcript: Transcript, layout: CaptionLayout = USUAL) -> str:
    """As SubRip; where another speaker begins there is a name or a dash."""
    blocks = []
    for number, cue in enumerate(cues_of(marked(transcript), layout), 1):
        times = timing(cue.start_ms, cue.end_ms, ",")
        text = _no_empty_lines(cue).replace("-->", "→")
        blocks.append(f"{number}\n{times}\n{text}\n")
    return "\n".join(blocks)


def as_document(words: Sequence[Word], layout: CaptionLayout = USUAL) -> dict[str, Any]:
    """Words and segments as published players read them: times are seconds of the presentation."""
    words = _shown(words, layout)
    return {
        "segments": [
            {
                "start": cue.start_ms / 1000,
                "end": cue.end_ms / 1000,
                "text": cue.text.replace("\n", " "),
                "speaker": speaker,
            }
            for cue, speaker in _cues(words, layout)
        ],
        "word_segments": [
            {
                "text": word.text,
                "start": word.start_ms / 1000,
                "end": word.end_ms / 1000,
                "confidence": word.confidence,
                "time_confidence": word.time_confidence,
                "speaker": word.speaker,
            }
            for word in words
        ],
    }


def as_json(transcript: Transcript, layout: CaptionLayout = USUAL) -> str:
    """`as_document` of the whole; also languages, text, speakers, and spans to beware of."""
    document = {
        "language": transcript.language,
        "languages": languages_in_seconds(transcript),
        "text": spoken(_shown(transcript.words, layout)),
        **as_document(transcript.words, layout),
        "speakers": [{"id": one, "name": transcript.names.get(one)} for one in transcript.speakers],
        "missing": spans_in_seconds(transcript.missing),
        "doubted": spans_in_seconds(transcript.doubted),
        "unattributed": spans_in_seconds(transcript.unattributed),
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def spans_in_seconds(spans: Iterable[SpanNote]) -> list[dict[str, Any]]:
    """Spans of a transcript as documents have them."""
    return [
        {"start": span.start_ms / 1000, "end": span.end_ms / 1000, "reason": span.reason}
        for span in spans
    ]


def languages_in_seconds(transcript: Transcript) -> list[dict[str, Any]]:
    """Spans of languages as documents have them."""
    return [
        {"start": span.start_ms / 1000, "end": span.end_ms / 1000, "language": span.language}
        for span in transcript.languages
    ]


FORMS: Final[dict[str, tuple[Callable[..., str], str]]] = {
    "vtt": (as_webvtt, "text/vtt"),
    "srt": (as_srt, "application/x-subrip"),
    "json": (as_json, "application/json"),
}
"""By the ending of a name: what writes it, and its media type."""


def _no_empty_lines(cue: CaptionCue) -> str:
    """An empty line would end the cue."""
    return "\n".join(line for line in cue.text.splitlines() if line.strip())


PLACES: Final = "places"
MADE: Final = "made"
_ROW: Final = np.dtype(("<i8", 2))


@record(frozen=True, slots=True)
class Pieces:
    """The pieces of a copy, in two files.

    Attributes:
        places: start (inclusive) and stop (exclusive) of each, two int64: in the file that is
            copied, or below 0 for as many bytes that were made.
        made: those, one after the other.
    """

    places: Path
    made: Path

    def __iter__(self) -> Iterator[tuple[int, int]]:
        for start, stop in np.fromfile(self.places, _ROW):
            yield int(start), int(stop)

    def write(self, pieces: list[Any]) -> None:
        """Write what `with_captions` gave."""
        made = [piece for piece in pieces if isinstance(piece, bytes)]
        rows = [
            (-len(piece), 0) if isinstance(piece, bytes) else (piece.start, piece.stop)
            for piece in pieces
        ]
        np.array(rows, "<i8").tofile(self.places)
        self.made.write_bytes(b"".join(made))


def pieces_of_copy(
    source: Source, cues: list[tuple[int, int, str]], language: str | None
) -> dict[str, Any]:
    """Find out what the copy of a file consists of, into the folder of the process."""
    pieces = with_captions(index(source, exact=True), source.read, cues, language=language)
    Pieces(Path(PLACES), Path(MADE)).write(pieces)
    return {}
