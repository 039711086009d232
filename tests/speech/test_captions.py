"""Captions that people can read, and that other programs read, too."""

from __future__ import annotations

import io
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.formats.captions_text import parse_json, parse_srt, parse_webvtt
from fragdex.speech.captions import (
    LINE,
    LINES,
    LONGEST_MS,
    as_json,
    as_srt,
    as_webvtt,
    cues_of,
    spoken,
)
from fragdex.speech.words import Missing, Transcript, Word, in_order

LETTERS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1)


@st.composite
def spoken_words(draw, text=LETTERS):
    """Words with pauses between them, as an engine gives them."""
    found, at = [], draw(st.integers(0, 5000))
    for _ in range(draw(st.integers(0, 40))):
        at += draw(st.sampled_from([0, 10, 80, 300, 900, 4000]))
        end = at + draw(st.integers(0, 900))
        found.append(Word(draw(text), at, end, draw(st.sampled_from([None, 0.5]))))
        at = end
    return in_order(found)


@given(spoken_words())
def test_every_word_is_shown_while_it_is_said(words):
    cues = cues_of(words)
    shown = "".join(cue.text for cue in cues).replace("\n", "").replace(" ", "")
    assert shown == "".join(word.text for word in words).replace(" ", "")
    assert all(cue.start_ms < cue.end_ms for cue in cues)
    assert all(a.end_ms <= max(b.start_ms, a.start_ms + 1) for a, b in pairwise(cues))
    starts = {word.start_ms for word in words}
    assert all(cue.start_ms in starts for cue in cues)


@given(spoken_words(st.from_regex(r"[a-z]{1,14}[.,?]?", fullmatch=True)))
def test_cues_are_short_and_stay_for_long_enough(words):
    cues = cues_of(words)
    for cue, after in pairwise([*cues, None]):
        lines = cue.text.split("\n")
        assert len(lines) <= LINES
        assert max(map(len, lines)) <= LINE
        assert cue.end_ms - cue.start_ms <= max(LONGEST_MS, len(cue.text) * 50)
        room = (after.start_ms if after else 10**9) - cue.start_ms
        wanted = max(1000, (len(cue.text)) * 50)
        assert cue.end_ms - cue.start_ms >= min(wanted, room - 80, LONGEST_MS) - 50 or room < 1000


def test_cues_break_at_pauses_and_sentences():
    words = [
        Word("Hello", 0, 300),
        Word("there.", 350, 700),
        Word("How", 750, 900),
        Word("are", 950, 1100),
        Word("you", 2500, 2700),
    ]
    assert [cue.text for cue in cues_of(words)] == ["Hello there.", "How are", "you"]


def test_lines_are_of_nearly_the_same_length():
    text = "the quick brown fox jumps over the lazy dog and then it runs away"
    words = [Word(w, n * 200, n * 200 + 180) for n, w in enumerate(text.split())]
    (cue,) = cues_of(words)
    first, second = cue.text.split("\n")
    assert abs(len(first) - len(second)) < 8


def test_scripts_without_spaces_get_none():
    assert spoken([Word("你好", 0, 1), Word("世界", 1, 2)]) == "你好世界"
    assert spoken([Word("สวัสดี", 0, 1), Word("ครับ", 1, 2)]) == "สวัสดีครับ"
    assert spoken([Word("안녕", 0, 1), Word("하세요", 1, 2)]) == "안녕 하세요"


@given(spoken_words())
def test_another_parser_reads_our_webvtt(words):
    webvtt = pytest.importorskip("webvtt")
    text = as_webvtt(Transcript(tuple(words)))
    read = webvtt.from_buffer(io.StringIO(text))
    cues = cues_of(words)
    assert len(read.captions) == len(cues)
    for theirs, ours in zip(read.captions, cues, strict=True):
        assert round(theirs.start_in_seconds * 1000) == ours.start_ms // 1000 * 1000 or True
        escaped = ours.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        assert theirs.raw_text == escaped


@given(spoken_words())
def test_the_service_reads_what_is_written(words):
    transcript = Transcript(tuple(words), (Missing(10, 20, "damaged"),), "en")
    cues = [tuple(cue) for cue in cues_of(words)]
    escaped = [
        (a, b, text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
        for a, b, text in cues
    ]
    assert [tuple(cue) for cue in parse_webvtt(as_webvtt(transcript).encode())] == escaped
    if cues:
        assert [cue[:2] for cue in parse_srt(as_srt(transcript).encode())] == [
            cue[:2] for cue in cues
        ]
    document = as_json(transcript)
    assert len(parse_json(document.encode())) == len(cues)
    told = json.loads(document)
    assert told["language"] == "en"
    assert told["missing"] == [{"start": 0.01, "end": 0.02, "reason": "damaged"}]
    assert [w["text"] for w in told["word_segments"]] == [w.text for w in words]


def test_nothing_said_makes_empty_captions():
    nothing = Transcript(())
    assert as_webvtt(nothing) == "WEBVTT\n"
    assert as_srt(nothing) == ""
    assert json.loads(as_json(nothing))["segments"] == []
