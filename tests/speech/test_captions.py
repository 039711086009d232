"""Captions that people can read, and that other programs read, too."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.muxing.captions import parse_json, parse_srt, parse_webvtt
from fragdex.speech.captions import (
    CUT_MS,
    USUAL,
    CaptionLayout,
    as_json,
    as_srt,
    as_webvtt,
    at_cuts,
    cues_of,
    spoken,
)
from fragdex.speech.words import (
    SliceTranscript,
    SpanNote,
    Transcript,
    Word,
    capitalized,
    in_order,
    merged,
)

LETTERS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1)


@st.composite
def spoken_words(draw, text=LETTERS):
    """Words with pauses between them, as an engine gives them."""
    words, at = [], draw(st.integers(0, 5000))
    for _ in range(draw(st.integers(0, 40))):
        at += draw(st.sampled_from([0, 10, 80, 300, 900, 4000]))
        end = at + draw(st.integers(0, 900))
        words.append(Word(draw(text), at, end, draw(st.sampled_from([None, 0.5]))))
        at = end
    return in_order(words)


@given(spoken_words())
def test_every_word_is_shown_while_it_is_said(words):
    cues = cues_of(words)
    shown = "".join(cue.text for cue in cues).replace("\n", "").replace(" ", "")
    assert shown == "".join(word.text for word in words).replace(" ", "")
    assert all(cue.start_ms < cue.end_ms for cue in cues)
    assert all(a.end_ms <= max(b.start_ms, a.start_ms + 1) for a, b in pairwise(cues))
    starts = {word.start_ms for word in words}
    assert all(cue.start_ms in starts for cue in cues)


LAYOUTS = st.builds(
    CaptionLayout,
    line_length=st.integers(16, 80),
    max_lines=st.integers(1, 3),
    reading_speed=st.integers(10, 30),
    min_duration_ms=st.integers(0, 2_000),
    max_duration_ms=st.integers(3_000, 10_000),
)


@given(spoken_words(st.from_regex(r"[a-z]{1,14}[.,?]?", fullmatch=True)), st.just(USUAL) | LAYOUTS)
def test_cues_are_short_and_stay_for_long_enough(words, layout):
    cues = cues_of(words, layout)
    for cue, after in pairwise([*cues, None]):
        lines = cue.text.split("\n")
        assert len(lines) <= layout.max_lines
        assert max(map(len, lines)) <= layout.line_length
        read = len(cue.text) * 1000 / layout.reading_speed + 1
        assert cue.end_ms - cue.start_ms <= max(layout.max_duration_ms, read)
        room = (after.start_ms if after else 10**9) - cue.start_ms
        wanted = max(layout.min_duration_ms, len(cue.text) * 1000 / layout.reading_speed)
        stays = cue.end_ms - cue.start_ms
        assert stays >= min(wanted, room - 80, layout.max_duration_ms) - 80 or room < 1000


ENGLISH = spoken_words(st.from_regex(r"[a-z]{1,14}[.,?]?", fullmatch=True))


def is_short(text):
    return len(text) <= 6 and " " not in text


@given(ENGLISH)
def test_no_line_is_one_short_word_where_another_break_fits(words):
    for cue in cues_of(words):
        lines = cue.text.split("\n")
        if len(lines) == 2 and any(map(is_short, lines)):
            parts = cue.text.split()
            for place in range(1, len(parts)):
                other = " ".join(parts[:place]), " ".join(parts[place:])
                assert max(map(len, other)) > USUAL.line_length or any(map(is_short, other))


@given(ENGLISH)
def test_cues_are_only_as_fast_as_the_words_make_them(words):
    """One that is gone before it is read stands alone: nothing fits with it."""
    cues = cues_of(words)
    said = {word.start_ms: word for word in reversed(words)}
    for cue, after in pairwise(cues):
        lasts = after.start_ms - 80 - cue.start_ms
        before = [word for word in words if word.start_ms < after.start_ms][-1]
        if lasts > 0 and len(cue.text) > 20 * lasts / 1000 and cue.end_ms < after.start_ms - 80:
            pytest.fail("it could have stayed for longer")
        if len(cue.text) * 1000 > 20 * max(lasts, before.end_ms - cue.start_ms):
            both = f"{cue.text} {after.text}".replace("\n", " ")
            last = [word for word in words if word.end_ms <= max(after.end_ms, before.end_ms)][-1]
            assert (
                said[after.start_ms].start_ms - before.end_ms >= 700
                or len(both) > USUAL.line_length
                or last.end_ms - cue.start_ms > USUAL.max_duration_ms
            )


@given(
    spoken_words(st.from_regex(r"[a-z]{1,14}[.,?]?", fullmatch=True)),
    st.just(USUAL) | LAYOUTS,
    st.data(),
)
def test_cues_follow_cuts_and_lose_nothing(words, layout, data):
    plain = cues_of(words, layout)
    sides = [side for cue in plain for side in (cue.start_ms, cue.end_ms)] or [0]
    near = st.builds(lambda at, by: max(0, at + by), st.sampled_from(sides), st.integers(-400, 400))
    cuts = tuple(data.draw(st.lists(near, max_size=30)))
    cues = cues_of(words, replace(layout, cuts_ms=cuts))
    assert [cue.text for cue in cues] == [cue.text for cue in plain]
    ends = iter(words)
    for old, new in zip(plain, cues, strict=True):
        last = [next(ends) for _ in old.text.split()][-1].end_ms
        for before, after in zip(old[:2], new[:2], strict=True):
            assert before == after or (after in cuts and abs(after - before) <= CUT_MS)
        assert new.start_ms <= old.start_ms
        assert new.end_ms >= last
        lasts, lasted = new.end_ms - new.start_ms, old.end_ms - old.start_ms
        read = len(old.text) * 1000 / layout.reading_speed - 1
        assert lasts >= min(lasted, max(layout.min_duration_ms, read))
        assert lasts <= max(lasted, layout.max_duration_ms)
    for (one, other), old in zip(pairwise(cues), plain, strict=False):
        # Words that take no time are shown for a millisecond, cuts or not.
        assert one.end_ms <= max(other.start_ms, old.start_ms + 1)


@given(st.data())
def test_cues_at_cuts_stay_where_they_are(data):
    words = data.draw(spoken_words(st.from_regex(r"[a-z]{1,14}[.,?]?", fullmatch=True)))
    layout = data.draw(st.just(USUAL) | LAYOUTS)
    plain, ends = cues_of(words, layout), iter(words)
    said = [[next(ends) for _ in cue.text.split()][-1].end_ms for cue in plain]
    times = st.integers(0, 20_000)
    layout = replace(layout, cuts_ms=tuple(data.draw(st.lists(times, max_size=60))))
    once = at_cuts(plain, said, layout)
    assert at_cuts(once, said, layout) == once


def test_a_cue_ends_and_the_next_begins_at_the_cut_between_them():
    words = [Word("One.", 1000, 2100), Word("Two.", 2350, 3600)]
    assert [cue[:2] for cue in cues_of(words)] == [(1000, 2100), (2350, 3600)]
    layout = CaptionLayout(cuts_ms=(800, 2240, 3950))
    assert [cue[:2] for cue in cues_of(words, layout)] == [(800, 2240), (2240, 3600)]


def test_a_sentence_begins_with_a_capital_where_two_slices_meet():
    heard = [
        SliceTranscript(0, (Word("All", 0, 90), Word("fine.", 100, 400))),
        SliceTranscript(1, (Word("the", 500, 600), Word("meeting", 700, 900))),
    ]
    assert merged(heard).text == "All fine. The meeting"
    assert merged([heard[0], SliceTranscript(1, (Word("the", 9_000, 9_100),))]).text.endswith("the")


@given(ENGLISH)
def test_capitals_change_nothing_else(words):
    changed = capitalized(words)
    assert [(w.text.lower(), *w[1:]) for w in changed] == [(w.text, *w[1:]) for w in words]
    assert capitalized(changed) == changed


def test_cues_break_at_pauses_and_sentences():
    words = [
        Word("Hello", 0, 300),
        Word("there.", 350, 1100),
        Word("How", 1150, 1300),
        Word("are", 1350, 1500),
        Word("you", 2900, 3100),
    ]
    assert [cue.text for cue in cues_of(words)] == ["Hello there.", "How are", "you"]


def test_lines_are_of_nearly_the_same_length():
    text = "the quick brown fox jumps over the lazy dog and then it runs away"
    words = [Word(w, n * 200, n * 200 + 180) for n, w in enumerate(text.split())]
    (cue,) = cues_of(words)
    first, second = cue.text.split("\n")
    assert abs(len(first) - len(second)) < 8


def test_a_sentence_too_short_to_be_read_is_shown_with_the_next_one():
    words = [Word("Yes.", 0, 300), Word("I", 350, 400), Word("do.", 450, 700)]
    assert [cue.text for cue in cues_of(words)] == ["Yes. I do."]
    alone = cues_of(words, CaptionLayout(min_duration_ms=0))
    assert [cue.text for cue in alone] == ["Yes.", "I do."]


def test_lines_break_between_clauses():
    text = "he told us the answer to the question, and then he left"
    words = [Word(w, n * 200, n * 200 + 180) for n, w in enumerate(text.split())]
    (cue,) = cues_of(words)
    assert cue.text == "he told us the answer to the question,\nand then he left"
    text = "we looked for hours at all of the pictures of the old town"
    words = [Word(w, n * 200, n * 200 + 180) for n, w in enumerate(text.split())]
    (cue,) = cues_of(words)
    assert cue.text.split("\n")[0].split()[-1] not in ("the", "of", "at", "for")


def test_a_layout_that_nothing_can_keep_to_is_refused():
    for wrong in ({"line_length": 3}, {"max_lines": 0}, {"reading_speed": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            CaptionLayout(**wrong)
    with pytest.raises(ValueError, match="more than"):
        CaptionLayout(min_duration_ms=5000, max_duration_ms=2000)


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
    transcript = Transcript(tuple(words), (SpanNote(10, 20, "damaged"),), "en")
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
    parsed_document = json.loads(document)
    assert parsed_document["language"] == "en"
    assert parsed_document["missing"] == [{"start": 0.01, "end": 0.02, "reason": "damaged"}]
    assert [w["text"] for w in parsed_document["word_segments"]] == [w.text for w in words]


def test_nothing_said_makes_empty_captions():
    nothing = Transcript(())
    assert as_webvtt(nothing) == "WEBVTT\n"
    assert as_srt(nothing) == ""
    assert json.loads(as_json(nothing))["segments"] == []
