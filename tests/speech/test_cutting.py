"""Cuts are a function of the sound around them, and utterances do not know of slices."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fragdex.speech.cutting import (
    FRAME,
    PAUSE,
    Cut,
    Utterance,
    cut_near,
    joined,
    loudness,
    threshold,
    utterances,
)

QUIET = 30.0


@st.composite
def sounds(draw):
    """Speech and pauses as noise, loud and faint, in runs of frames."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    runs = draw(st.lists(st.tuples(st.integers(1, 200), st.booleans()), min_size=1, max_size=40))
    parts = [rng.normal(0, 2000 if loud else 8, frames * FRAME) for frames, loud in runs]
    return np.concatenate(parts).astype(np.int16)


def reader(sound):
    """Frames of a sound that is silent outside of itself, and a list of what was read."""
    asked = []

    def read(start, stop):
        asked.append((start, stop))
        whole = np.zeros((stop - start) * FRAME, np.int16)
        low, high = max(0, start), min(stop, len(sound) // FRAME)
        if low < high:
            whole[(low - start) * FRAME : (high - start) * FRAME] = sound[
                low * FRAME : high * FRAME
            ]
        return whole

    return read, asked


@given(sounds(), st.integers(0, 3000), st.integers(166, 500))
def test_a_cut_depends_on_nothing_but_the_sound_around_it(sound, border, reach):
    frames = len(sound) // FRAME
    border = min(border, frames)
    read, asked = reader(sound)
    cut = cut_near(read, border, reach, QUIET, 0, frames)
    assert 0 <= cut.frame <= frames
    assert abs(cut.frame - border) <= reach
    assert all(border - reach - 2 <= low < high <= border + reach + 2 for low, high in asked)
    other = sound.copy()
    other[: max(0, border - reach - 2) * FRAME] = 12345
    other[(border + reach + 2) * FRAME :] = -12345
    assert cut_near(reader(other)[0], border, reach, QUIET, 0, frames) == cut


@given(sounds(), st.data())
def test_a_cut_in_a_pause_parts_the_utterances_of_the_whole(sound, data):
    frames = len(sound) // FRAME
    read, _ = reader(sound)
    whole = utterances(read, 0, frames, QUIET)
    border = data.draw(st.integers(0, frames))
    cut = cut_near(read, border, 300, QUIET, 0, frames)
    if cut.hard or not 0 < cut.frame < frames:
        return
    parts = utterances(read, 0, cut.frame, QUIET)
    parts += utterances(read, cut.frame, frames, QUIET)
    assert parts == whole


@given(sounds())
def test_utterances_are_in_order_and_hold_whatever_is_loud(sound):
    frames = len(sound) // FRAME
    spans = utterances(reader(sound)[0], 0, frames, QUIET)
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)
    assert all(start < stop for start, stop in spans)
    near = np.convolve(loudness(sound) > QUIET + 20, np.ones(5), "same")
    loud = np.flatnonzero(near == 5)
    inside = np.zeros(frames, bool)
    for start, stop in spans:
        inside[start:stop] = True
    assert inside[loud].all()


@settings(max_examples=20)
@given(st.lists(st.integers(2, 300), min_size=2, max_size=20), st.integers(150, 2000))
def test_joined_utterances_stay_within_the_window(lengths, most):
    spans, at = [], 0
    for length in lengths:
        spans.append(Utterance(at, at + length, at, at + length + PAUSE))
        at += length + PAUSE
    joined_spans = joined(spans, most)
    assert [joined_spans[0].start, joined_spans[-1].stop] == [0, spans[-1].stop]
    assert [joined_spans[0].begin, joined_spans[-1].end] == [0, spans[-1].end]
    assert all(one.end == other.begin for one, other in pairwise(joined_spans))
    assert all(span.stop - span.start <= max(most, *lengths) for span in joined_spans)


def test_the_middle_of_a_short_pause_is_the_place():
    sound = np.full(1000 * FRAME, 3000, np.int16)
    sound[500 * FRAME : 540 * FRAME] = 0
    read, _ = reader(sound)
    assert cut_near(read, 480, 300, QUIET, 0, 1000) == Cut(520, 40)
    assert cut_near(read, 480, 300, QUIET, 0, 1000) == cut_near(read, 530, 300, QUIET, 0, 1000)


def test_without_any_pause_the_quietest_moment_is_the_place():
    rng = np.random.default_rng(1)
    sound = rng.normal(0, 3000, 1000 * FRAME).astype(np.int16)
    sound[610 * FRAME : 640 * FRAME] //= 4
    cut = cut_near(reader(sound)[0], 500, 300, QUIET, 0, 1000)
    assert cut.hard
    assert 605 < cut.frame < 645


def test_digital_silence_says_nothing_of_how_loud_a_room_is():
    rng = np.random.default_rng(1)
    speech = rng.normal(0, 3000, 100 * FRAME).astype(np.int16)
    room = rng.normal(0, 20, 100 * FRAME).astype(np.int16)
    nothing = np.zeros(2000 * FRAME, np.int16)
    assert threshold([speech, room]) == threshold([nothing, speech, room])
    assert threshold([nothing]) == threshold([]) == 3.0
