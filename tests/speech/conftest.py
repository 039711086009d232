"""Spoken fixtures, and an engine that hears nothing but which sound it was given."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import fragdex
from fragdex.cli.admin import share_one_arena
from fragdex.speech.plan import TranscriptionPlan
from fragdex.speech.slices import Listener
from fragdex.speech.words import SliceTranscript, Word

# In this process as in that of an engine (`fragdex.speech.process`): one thread, one heap.
os.environ["MOONSHINE_ORT_SINGLE_THREAD"] = "1"
share_one_arena()

SPEECH = Path(__file__).parents[2] / "fixtures" / "speech"


class Echo:
    """An engine whose word is the checksum of the utterance: the slightest change of it shows."""

    name, version, model_id = "echo", "1", "none"
    window_ms = 0
    languages = frozenset({"en"})
    deterministic = True
    own_vocabulary = False

    def open(self) -> None:
        pass

    def close(self) -> None:
        pass

    def detect(self, sounds: Sequence[Any]) -> str:
        return "en"

    def transcribe(
        self, utterances: Sequence[Any], language: str | None, vocabulary: Sequence[str] = ()
    ) -> list[list[Word]]:
        return [
            [Word(f"{zlib.crc32(sound.tobytes()):08x}", 0, len(sound) // 16)]
            for sound in utterances
        ]


def truth(name: str) -> list[Any]:
    """[word, start_ms, end_ms] of a fixture."""
    rows = json.loads((SPEECH / "MANIFEST.json").read_text("utf-8"))["files"]
    return next(row["words"] for row in rows if row["file"] == name)


@pytest.fixture
def echo():
    return Echo()


@pytest.fixture
def hear():
    """hear(file or bytes, work_slice_ms, numbers=None) → the plan, and what was heard."""
    sources = []

    def run(
        file: Any,
        work_slice_ms: int,
        numbers: Sequence[int] | None = None,
        engine: Any = None,
        vocabulary: tuple[str, ...] = (),
    ) -> tuple[TranscriptionPlan, list[SliceTranscript]]:
        source = fragdex.open_source(file)
        sources.append(source)
        listener = Listener(fragdex.index(source, exact=True), source)
        engine = engine or Echo()
        plan = listener.plan(work_slice_ms, engine, None, vocabulary)
        chosen = plan.slices if numbers is None else [n for n in numbers if n in plan.slices]
        return plan, [listener.transcribe_slice(plan, number, engine) for number in chosen]

    yield run
    for source in sources:
        source.close()
