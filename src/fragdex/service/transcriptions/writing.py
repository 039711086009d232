"""Captions as WebVTT, SubRip and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from fragdex.formats.captions_track import Cue
from fragdex.service.transcriptions.cues import cues_of, spoken
from fragdex.service.transcriptions.words import Transcript, Word

__all__ = ["FORMS", "as_document", "as_json", "as_srt", "as_webvtt"]


def as_webvtt(transcript: Transcript) -> str:
    r"""As WebVTT (W3C, WebVTT: The Web Video Text Tracks Format, 4.1).

    >>> as_webvtt(Transcript((Word("a<b", 0, 1000),)))
    'WEBVTT\n\n00:00:00.000 --> 00:00:01.000\na&lt;b\n'
    """
    blocks = ["WEBVTT\n"]
    for cue in cues_of(transcript.words):
        times = f"{_clock(cue.start_ms, '.')} --> {_clock(cue.end_ms, '.')}"
        blocks.append(f"{times}\n{_escaped(_no_empty_lines(cue))}\n")
    return "\n".join(blocks)


def as_srt(transcript: Transcript) -> str:
    r"""As SubRip.

    >>> as_srt(Transcript((Word("hello", 0, 1000),)))
    '1\n00:00:00,000 --> 00:00:01,000\nhello\n'
    """
    blocks = []
    for number, cue in enumerate(cues_of(transcript.words), 1):
        times = f"{_clock(cue.start_ms, ',')} --> {_clock(cue.end_ms, ',')}"
        text = _no_empty_lines(cue).replace("-->", "→")
        blocks.append(f"{number}\n{times}\n{text}\n")
    return "\n".join(blocks)


def as_document(words: Sequence[Word]) -> dict[str, Any]:
    """Words and segments as published players read them: times are seconds of the presentation.

    >>> as_document([Word("hi", 0, 500, 0.9)])["word_segments"]
    [{'text': 'hi', 'start': 0.0, 'end': 0.5, 'confidence': 0.9}]
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


def _clock(ms: int, point: str) -> str:
    hours, rest = divmod(ms, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    seconds, ms = divmod(rest, 1000)
    return f"{hours:02}:{minutes:02}:{seconds:02}{point}{ms:03}"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _no_empty_lines(cue: Cue) -> str:
    """An empty line would end the cue."""
    return "\n".join(line for line in cue.text.splitlines() if line.strip())
