"""Who speaks: a function of the sound, one speaker a cue, and names that break nothing."""

from __future__ import annotations

import contextlib
import json
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.__main__ import main
from fragdex.errors import EngineUnavailable, InvalidRequest, Unprocessable
from fragdex.muxing.captions import parse_srt, parse_webvtt
from fragdex.speech import voices as module
from fragdex.speech.captions import CaptionLayout, as_json, as_srt, as_webvtt, cues_of, marked
from fragdex.speech.diarization import Diarizer, Turn, grouped, matched
from fragdex.speech.process import SpeechProcess
from fragdex.speech.slices import Listener
from fragdex.speech.speakers import numbered, plain_name, speaker_names, with_speakers
from fragdex.speech.transcribe import transcribe
from fragdex.speech.voices import COLUMNS, DIMENSIONS, FRAMES, HOP, fbank, in_columns_of
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


@given(WORDS, TURNS)
def test_words_that_are_nobodys_lie_in_reported_spans(words, turns):
    said = with_speakers(words, numbered(turns, words))
    transcript = Transcript(tuple(said), attributed=True)
    spans = json.loads(as_json(transcript))["unattributed"]
    for number, word in enumerate(said):
        inside = [
            span for span in transcript.unattributed
            if span.start_ms <= word.start_ms and word.end_ms <= span.end_ms
        ]  # fmt: skip
        assert word.speaker is not None or len(inside) == 1, number
    assert (
        len(spans)
        == len(transcript.unattributed)
        == sum(
            word.speaker is None and (not number or said[number - 1].speaker is not None)
            for number, word in enumerate(said)
        )
    )
    assert Transcript(tuple(said)).unattributed == ()


@pytest.mark.large
def test_a_stretch_that_breaks_is_reported(monkeypatch, capsys, tmp_path):
    pytest.importorskip("moonshine_voice")

    def breaks(*args, **options):
        raise Unprocessable("this sound breaks the models")

    monkeypatch.setattr(SpeechProcess, "speaker_turns", breaks)
    file, output = SPEECH / "pauses-flac.mp4", tmp_path / "words.json"
    assert main(["transcribe", str(file), "-o", str(output), "--speakers"]) == 0
    document = json.loads(output.read_text("utf-8"))
    (span,) = document["unattributed"]
    words = document["word_segments"]
    assert {word["speaker"] for word in words} == {None}
    assert (span["start"], span["end"]) == (words[0]["start"], words[-1]["end"])
    assert "has no speaker: no voice was found here" in capsys.readouterr().err


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=30), st.randoms())
def test_what_sounds_alike_is_one_voice_in_any_order(parts, random):
    vectors = np.eye(DIMENSIONS, dtype=np.float32)[[voice for voice, _ in parts]]
    vectors = vectors + np.random.default_rng(1).normal(0, 0.01, vectors.shape)
    order = [*range(len(parts))]
    random.shuffle(order)
    first = np.array([stretch == 0 for _, stretch in parts], bool)
    apart = first[:, None] & first & ~np.eye(len(parts), dtype=bool)
    groups = grouped(vectors[order], np.ones(len(parts)), parted=apart[np.ix_(order, order)])
    assert sorted(n for group in groups for n in group) == [*range(len(parts))]
    for group in groups:
        of = [parts[order[n]] for n in group]
        assert len({voice for voice, _ in of}) == 1
        assert sum(stretch == 0 for _, stretch in of) <= 1


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 300), st.integers(1, 90)), max_size=8))
def test_columns_go_on_from_window_to_window(spans):
    """Windows of the segmentation number voices as they like."""
    active = np.zeros((FRAMES + HOP, COLUMNS), bool)
    for column, start, length in spans:
        active[start : start + length, column] = True
    before, here = active[:FRAMES], active[HOP:]
    both = before[HOP:]
    for order in permutations(range(COLUMNS)):
        again = in_columns_of(before[HOP:], here[:, order])
        assert (again[: len(both)] == both).all()


def test_energies_are_those_of_kaldi():
    """A tone is loudest in its band; sound that is twice as loud has four times the energy."""
    times = np.arange(16_000) / 16_000
    tone = (5_000 * np.sin(2 * np.pi * 1_000 * times)).astype(np.int16)
    energies = fbank(tone)
    assert energies.shape == (98, 80)
    centre = 1127 * np.log1p(np.array([20, 1_000, 8_000]) / 700)
    band = (centre[1] - centre[0]) / (centre[2] - centre[0]) * 81 - 1
    assert abs(energies.mean(axis=0).argmax() - band) <= 0.5
    assert np.allclose(fbank(2 * tone)[:, 26] - energies[:, 26], np.log(4), atol=1e-2)
    assert fbank(tone[:399]).shape == (0, 80)


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
    monkeypatch.setattr(module, "_bytes_of", lambda model: None)
    pytest.importorskip("moonshine_voice")
    with pytest.raises(EngineUnavailable, match="does not carry the models") as error:
        transcribe(SPEECH / "pauses-flac.mp4", speakers=True)
    assert "fragdex[speech]" in error.value.advice


def test_one_voice_is_one_and_quiet_is_nobody():
    pytest.importorskip("moonshine_voice")
    diarizer = Diarizer()
    (_, start, _), *_ = truth("pauses-flac.mp4")
    with fragdex.open_source(SPEECH / "pauses-flac.mp4") as source:
        sound = Listener(fragdex.index(source, exact=True), source).read(0, start // 10 + 250)
    turns = diarizer.speech_turns(sound)
    assert {turn.voice for turn in turns} == {0}
    assert abs(turns[0].start_ms - start) < 250
    assert all(turn.start_ms < turn.end_ms for turn in turns)
    for quiet in (sound[:0], sound[:100], np.zeros(32_000, np.int16)):
        assert diarizer.speech_turns(quiet) == []


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
