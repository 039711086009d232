"""Each stretch of ten minutes is heard in its own language, however the work is cut."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fragdex.speech import plan as plans
from fragdex.speech import slices
from fragdex.speech.captions import as_json, as_srt, as_webvtt
from fragdex.speech.cutting import SAMPLE_RATE, UNIT
from fragdex.speech.plan import TranscriptionPlan
from fragdex.speech.slices import Listener
from fragdex.speech.words import LanguageSpan, SliceTranscript, Transcript, Word, merged
from speech.conftest import Echo

LANGUAGES = ("en", "de", "fr")
LAYOUTS = st.lists(st.sampled_from([*LANGUAGES, None]), min_size=1, max_size=4)
WHOLE = 10_000_000
SHORT = 3
"""Units of a short stretch."""


class Polyglot(Echo):
    """Tells languages by the remainders of samples, and writes in which it heard each word."""

    languages = frozenset(LANGUAGES)

    def __init__(self, window_ms: int = 0) -> None:
        self.window_ms = window_ms
        self.asked: list[int] = []

    def detect(self, sounds: Sequence[Any]) -> str | None:
        self.asked.append(sum(map(len, sounds)))
        loud = np.concatenate([sound[np.abs(sound) > 100] % 3 for sound in sounds])
        return LANGUAGES[np.bincount(loud).argmax()] if len(loud) else None

    def transcribe(
        self, utterances: Sequence[Any], language: str | None, vocabulary: Sequence[str] = ()
    ) -> list[list[Word]]:
        words = super().transcribe(utterances, language, vocabulary)
        return [[one._replace(text=f"{language}-{one.text}") for one in part] for part in words]


class Spoken:
    """A reader of sound whose samples say in which language each stretch is; no file.

    A second of a tone and a pause of one, but every seventh second is a tone.
    """

    def __init__(self, layout: Sequence[str | None]) -> None:
        self.track = mock.Mock(id=1)
        self.samples = None
        self._stretch = plans.STRETCH * UNIT // 100
        self.span = (0, len(layout) * plans.STRETCH * UNIT)
        self._layout = layout
        self.seconds = 0

    def gaps(self, start: Any, stop: Any) -> list[Any]:
        return []

    def read(self, start: Any, stop: Any) -> Any:
        seconds = range(int(start), int(stop))
        self.seconds += len(seconds)
        sound = np.zeros((len(seconds), SAMPLE_RATE, 2), np.int16)
        for place, second in enumerate(seconds):
            number = second // self._stretch
            language = self._layout[number] if 0 <= number < len(self._layout) else None
            if language and (second % 2 or second % 7 == 0):
                sound[place] = _tone(LANGUAGES.index(language), second % 89)[:, None]
        return sound.reshape(-1, 2)


@cache
def _tone(language: int, second: int) -> Any:
    wave = 1000 * np.sin(np.arange(SAMPLE_RATE) * (0.3 + second / 100))
    return (wave // 3 * 3 + language).astype(np.int16)


def listening(layout: Sequence[str | None]) -> Listener:
    """A listener of a track whose stretches are in these languages; None: of silence."""
    reader = Spoken(layout)
    with mock.patch.object(slices, "AudioReader", return_value=reader):
        return Listener(mock.Mock(), mock.Mock(bytes_read=0))


def planned(
    listener: Listener, engine: Echo, work_slice_ms: int = 30_000, language: str | None = None
) -> TranscriptionPlan:
    spans = [listener._reader.span]
    with mock.patch.object(slices, "spans_of", return_value=spans):
        return listener.plan(work_slice_ms, engine, language)


def transcribed(
    listeners: Sequence[Listener], plan: TranscriptionPlan, engine: Echo, turn: int = 0
) -> Transcript:
    """What listeners hear in turn, each of them some slices, the last ones first."""
    numbers = [*plan.slices[turn:], *plan.slices[:turn]][::-1]
    parts = [
        listeners[place % len(listeners)].transcribe_slice(plan, number, engine)
        for place, number in enumerate(numbers)
    ]
    return merged(parts, plan.language)


@pytest.fixture
def short(monkeypatch):
    """Stretches of half a minute."""
    monkeypatch.setattr(plans, "STRETCH", SHORT)
    monkeypatch.setattr(slices, "STRETCH", SHORT)


def filled(layout: Sequence[str | None]) -> list[str | None]:
    """The language of each stretch: silence is in that of the stretch before, or of the first."""
    spoken: list[str | None] = [next(filter(None, layout), None)]
    for language in layout:
        spoken.append(language or spoken[-1])
    return spoken[1:]


@given(LAYOUTS, st.integers(5_000, 60_000), st.sampled_from([0, 28_000]), st.integers(0, 9))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_slices_hear_each_stretch_in_its_language(short, layout, work_slice_ms, window, turn):
    whole = planned(listening(layout), Polyglot(window), WHOLE)
    expected = transcribed([listening(layout)], whole, Polyglot(window))
    plan = planned(listening(layout), Polyglot(window), work_slice_ms)
    assert (plan.language, plan.languages) == (whole.language, whole.languages)
    # two workers, each of which has the plan from the database
    sent = TranscriptionPlan.of_json(json.loads(json.dumps(plan.as_json())))
    assert sent == plan
    workers = [listening(layout), listening(layout)]
    assert transcribed(workers, sent, Polyglot(window), turn) == expected
    spoken = filled(layout)
    several = len(set(layout) - {None}) > 1
    assert any(layout) == bool(expected.words)
    for word in expected.words:
        low, high = max(0, word.start_ms - 3_000), word.end_ms + 3_000
        allowed = spoken[low // (SHORT * 10_000) : high // (SHORT * 10_000) + 1]
        assert word.text.partition("-")[0] in allowed
        assert word.language == (word.text.partition("-")[0] if several else None)


def test_a_track_of_one_language_is_asked_about_once_and_heard_as_before(short):
    for layout in (["de"], ["de", None, "de"]):
        engine = Polyglot()
        plan = planned(listening(layout), engine)
        assert (plan.language, plan.languages) == ("de", ())
        transcript = transcribed([listening(layout)], plan, engine)
        assert {word.language for word in transcript.words} == {None}
        assert (transcript.language, transcript.languages) == ("de", ())
        assert len(engine.asked) == sum(map(bool, layout))


def test_what_nobody_detects_has_no_language(short):
    engine = Polyglot()
    plan = planned(listening([None, None]), engine)
    assert (plan.language, plan.languages) == (None, ())
    engine.detect = lambda sounds: None
    plan = planned(listening(["de", "fr"]), engine)
    assert (plan.language, plan.languages) == (None, ())
    assert transcribed([listening(["de", "fr"])], plan, engine).language is None


@pytest.mark.parametrize("known", [frozenset({"en"}), None])
def test_an_engine_that_knows_one_language_is_asked_once(short, known):
    engine = Polyglot()
    engine.languages = known
    plan = planned(listening(["en", "de"]), engine)
    assert len(engine.asked) == 1
    assert plan.languages == ()


def test_a_requested_language_is_that_of_every_stretch(short):
    layout = ["en", "de"]
    engine = Polyglot()
    plan = planned(listening(layout), engine, language="fr")
    words = transcribed([listening(layout)], plan, engine).words
    assert not engine.asked
    assert {word.text.partition("-")[0] for word in words} == {"fr"}


def test_a_plan_of_an_earlier_version_is_heard_in_its_one_language(short):
    layout = ["en", "de"]
    plain = planned(listening(layout), Polyglot()).as_json()
    assert plain.pop("languages")
    del plain["vocabulary"]
    plan = TranscriptionPlan.of_json(plain)
    words = transcribed([listening(layout)], plan, Polyglot()).words
    assert {word.text.partition("-")[0] for word in words} == {plan.language}
    earlier = {"number": 0, "words": [["a", 0, 9, None, None, False, None]], "missing": []}
    heard = SliceTranscript.of_json({**earlier, "utterances": 1, "bytes_read": 0})
    assert heard.words == (Word("a", 0, 9),)


def test_asking_reads_a_minute_of_a_stretch_at_most():
    layout = ["en", "de", "de", None, "fr"]
    listener, engine = listening(layout), Polyglot()
    steps: list[tuple[int, int]] = []
    spans = [listener._reader.span]
    with mock.patch.object(slices, "spans_of", return_value=spans):
        plan = listener.plan(30_000, engine, None, (), lambda done, of: steps.append((done, of)))
    assert (plan.language, plan.languages) == ("de", ((0, "en"), (1, "de"), (4, "fr")))
    assert steps == [(number, 5) for number in range(5)]
    assert len(engine.asked) == 4, "silence tells nothing"
    assert all(10 * SAMPLE_RATE <= asked <= 60 * SAMPLE_RATE for asked in engine.asked)
    # around each of six parts, and of eight for the threshold, some frames lie in begun seconds
    assert listener._reader.seconds <= 5 * (60 + 6 * 2) + 8 * 4


def test_documents_say_where_which_language_is_spoken():
    words = tuple(
        Word(text, 1000 * n, 1000 * n + 900, language=language)
        for n, (text, language) in enumerate(
            [("one", "en"), ("two", "en"), ("drei", "de"), ("vier", "de"), ("fünf", "de")]
        )
    )
    several = merged([SliceTranscript(0, words)], "en")
    assert several.language == "de"
    assert several.languages == (LanguageSpan(0, 1900, "en"), LanguageSpan(2000, 4900, "de"))
    assert json.loads(as_json(several))["languages"] == [
        {"start": 0.0, "end": 1.9, "language": "en"}, {"start": 2.0, "end": 4.9, "language": "de"},
    ]  # fmt: skip
    alike = Transcript(tuple(word._replace(language=None) for word in words), language="de")
    assert json.loads(as_json(alike))["languages"] == []
    for form in (as_webvtt, as_srt):
        assert form(several) == form(alike)


def test_the_language_of_words_that_are_mostly_doubted_is_not_told():
    words = tuple(
        Word("a", n, n + 1, doubted=n < 2, language=language)
        for n, language in enumerate(["de", "fr", "de"])
    )
    heard = [SliceTranscript(0, words)]
    assert (merged(heard).language, merged(heard).languages) == (None, ())
    assert merged(heard, requested="de").language == "de"
    doubts = [one.reason for one in Transcript(words).doubted]
    assert doubts == [f"this does not sound like the language {one}" for one in ("de", "fr")]
