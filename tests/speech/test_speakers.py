"""Who speaks: a function of the sound, one speaker a cue, and names that break nothing."""

from __future__ import annotations

import contextlib
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.errors import EngineUnavailable, InvalidRequest
from fragdex.muxing.captions import parse_srt, parse_webvtt
from fragdex.speech import speakers as module
from fragdex.speech.captions import CaptionLayout, as_json, as_srt, as_webvtt, cues_of, marked
from fragdex.speech.slices import Listener
from fragdex.speech.speakers import (
    Diarizer,
    Turn,
    matched,
    numbered,
    plain_name,
    speaker_names,
    with_speakers,
)
from fragdex.speech.transcribe import transcribe
from fragdex.speech.words import Transcript, Word, in_order
from speech.conftest import SPEECH, truth

SPAN = st.tuples(st.integers(0, 20_000), st.integers(1, 3_000))
WORDS = st.lists(st.tuples(SPAN, st.from_regex(r"[a-z]{1,9}[.,?]?", fullmatch=True))).map(
    lambda rows: in_order(Word(text, at, at + length) for (at, length), text in rows)
)
TURNS = st.lists(
    st.builds(lambda span, voice: Turn(span[0], sum(span), voice), SPAN, st.integers(0, 4))
)
NAMES = st.text(min_size=1, max_size=80)


@given(WORDS, TURNS, st.data())
def test_a_word_has_the_same_speaker_whatever_is_around_it(words, turns, data):
    ordered = numbered(turns, words)
    all_words = with_speakers(words, ordered)
    chosen = [word for word in all_words if data.draw(st.booleans())]
    again = with_speakers([word._replace(speaker=None) for word in chosen], ordered)
    assert again == chosen
    assert [word._replace(speaker=None) for word in all_words] == words
    assert numbered(ordered, words) == ordered


@given(WORDS, TURNS)
def test_speakers_are_numbered_as_they_first_speak(words, turns):
    said = with_speakers(words, numbered(turns, words))
    speakers = Transcript(tuple(said)).speakers
    assert speakers == [f"S{number}" for number in range(1, len(speakers) + 1)]
    for word, named in zip(words, said, strict=True):
        both = [t for t in turns if t.start_ms < word.end_ms and word.start_ms < t.end_ms]
        assert named.speaker is not None or not both


@given(WORDS, TURNS, st.booleans())
def test_a_cue_holds_one_speaker(words, turns, leave_out):
    layout = CaptionLayout(leave_out_doubted=leave_out)
    said = with_speakers(words, numbered(turns, words))
    transcript = Transcript(tuple(said))
    cues = cues_of(said, layout)
    speakers = [cue["speaker"] for cue in json.loads(as_json(transcript, layout))["segments"]]
    left = list(said)
    for cue, speaker in zip(cues, speakers, strict=True):
        group = [left.pop(0) for _ in cue.text.split()]
        assert {word.speaker for word in group} == {speaker}
    assert not left


@given(WORDS, TURNS, st.dictionaries(st.sampled_from(["S1", "S2", "S3"]), NAMES))
def test_no_name_breaks_captions(words, turns, given_names):
    said = with_speakers(words, numbered(turns, words))
    transcript = Transcript(tuple(said))
    names = {}
    for speaker, name in given_names.items():
        with contextlib.suppress(InvalidRequest):
            names |= speaker_names({speaker: name}, transcript.speakers)
    transcript = Transcript(tuple(said), names=names)
    cues = cues_of(said)
    read = parse_webvtt(as_webvtt(transcript).encode())
    assert [tuple(cue)[:2] for cue in read] == [cue[:2] for cue in cues]
    assert all(cue.text.count(">") == (cue.text.startswith("<v ")) for cue in read)
    shown = cues_of(marked(transcript))
    if shown:
        assert [cue[:2] for cue in parse_srt(as_srt(transcript).encode())] == [
            cue[:2] for cue in shown
        ]
    assert all(len(line) <= 42 for cue in shown for line in cue.text.split("\n"))


def test_names_stand_in_every_form():
    words = (Word("Yes?", 0, 900, speaker="S1"), Word("No.", 950, 1900, speaker="S2"))
    transcript = Transcript(words, names={"S1": "A <b> & C"})
    vtt, srt = as_webvtt(transcript), as_srt(transcript)
    assert "<v A &lt;b&gt; &amp; C>Yes?\n" in vtt
    assert "<v S2>No.\n" in vtt
    assert "\nA <b> & C: Yes?\n" in srt
    assert "\n- No.\n" in srt
    document = json.loads(as_json(transcript))
    assert document["speakers"] == [
        {"id": "S1", "name": "A <b> & C"}, {"id": "S2", "name": None},
    ]  # fmt: skip
    assert [word["speaker"] for word in document["word_segments"]] == ["S1", "S2"]


@pytest.mark.parametrize("name", ["", "  \n", "a" * 61, "a\0b", "\u202eevil", "\ud800"])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(InvalidRequest, match="name") as error:
        plain_name(name)
    assert "printable" in error.value.expected


def test_a_speaker_that_does_not_speak_is_refused():
    with pytest.raises(InvalidRequest, match="no such speaker") as error:
        speaker_names({"S3": "Ada"}, ["S1", "S2"])
    assert error.value.expected == "one of S1, S2"


def test_stretches_do_not_depend_on_slices(echo, hear):
    plans = {size: hear(SPEECH / "even-aac.mp4", size, [])[0] for size in (5_000, 30_000, 600_000)}
    assert {plan.stretches for plan in plans.values()} == {(0,)}
    with fragdex.open_source(SPEECH / "even-aac.mp4") as source:
        listener = Listener(fragdex.index(source, exact=True), source)
        assert len({listener.cut(plan, unit) for plan in plans.values() for unit in [1]}) == 1


def test_without_the_library_it_is_said_before_anything_is_heard(monkeypatch):
    monkeypatch.setattr(module, "built_in_model", lambda: None)
    pytest.importorskip("moonshine_voice")
    with pytest.raises(EngineUnavailable, match="no model") as error:
        transcribe(SPEECH / "pauses-flac.mp4", speakers=True)
    assert "fragdex[speech]" in error.value.advice


@pytest.mark.large
def test_two_voices_in_turn_are_told_apart():
    pytest.importorskip("moonshine_voice")
    heard = transcribe(SPEECH / "pauses-flac.mp4", speakers=True, jobs=2, work_slice_ms=10_000)
    starts = [start for _, start, _ in truth("pauses-flac.mp4")]
    assert heard.speakers == ["S1", "S2"]
    assert heard.words[0].start_ms <= starts[0] + 500
    # four sentences, by two voices in turn
    turns = [word.speaker for word in heard.words]
    changes = sum(one != other for one, other in pairwise(turns))
    assert changes == 3


@pytest.mark.large
def test_matching_changes_numbers_alone():
    pytest.importorskip("moonshine_voice")
    with fragdex.open_source(SPEECH / "pauses-flac.mp4") as source:
        listener = Listener(fragdex.index(source, exact=True), source)
        stretches = [
            [Turn(300, 2_000, 1), Turn(1_500, 2_200, 0)], [], [Turn(3_600, 5_000, 0)],
        ]  # fmt: skip
        turns = matched(stretches, listener.read, Diarizer())
        assert sorted(turn[:2] for turn in turns) == sorted(t[:2] for s in stretches for t in s)
        assert matched(stretches[:1], listener.read, Diarizer()) == stretches[0]
