"""The words of a span where there are no captions, by an engine of speech."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

from fragdex import Index, open_index
from fragdex.agents.listening import Line, page_of
from fragdex.agents.work import Call
from fragdex.sandbox.folders import OwnFolder, take_file
from fragdex.speech.captions import cues_of
from fragdex.speech.engines import EngineChoice
from fragdex.speech.process import SpeechProcess
from fragdex.speech.words import Word

MOST_SECONDS: Final = 600
"""Of speech that is transcribed for one answer."""
_SLICE_MS: Final = 30_000


def transcribed(
    call: Call, name: str, start: float, stop: float, search: str, language: str
) -> dict[str, Any]:
    """Lines of a span, as `listening.words` gives them.

    Raises:
        EngineUnavailable: no engine, or its model is missing.
        And as `Call.do`.
    """
    began, until = time.monotonic(), min(stop, start + MOST_SECONDS)
    first, last = (round(at * 1000) for at in (start, until))
    words: list[Word] = []
    with call.allowed.open(name) as source, SpeechProcess(EngineChoice()) as engine:
        facts = engine.open(check=call.check)
        engine.take(_index(call, name), source, check=call.check)
        plan = engine.plan(_SLICE_MS, language or None, check=call.check)
        numbers = [n for n in plan.slices if first - _SLICE_MS < n * _SLICE_MS < last]
        for place, number in enumerate(numbers):
            words += engine.transcribe_slice(plan, number, check=call.check).words
            call.report((place + 1) / len(numbers), "listening")
        read = {"bytes": source.bytes_read, "requests": source.requests}
    lines = [
        Line(cue.start_ms / 1000, cue.end_ms / 1000, " ".join(cue.text.split()))
        for cue in cues_of(words)
        if cue.end_ms > first and cue.start_ms < last
    ]
    return {
        "start": start, "stop": until, "from": f"speech, by {facts.name} {facts.version}",
        "language": plan.language, **page_of(lines, search, until if until < stop else None),
        "read": read | {"seconds": round(time.monotonic() - began, 2)},
    }  # fmt: skip


def _index(call: Call, name: str) -> Index:
    """The index that a child made of a stranger's video."""
    with OwnFolder() as folder:
        file = folder / "index"

        def take(where: Path, _: dict[str, Any]) -> None:
            take_file(where / "index", file)

        call.do("index", [name], take=take)
        return open_index(file.read_bytes())
