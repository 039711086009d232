"""Slices are heard as the same part of the whole, whatever their length and their order."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.errors import LimitExceeded, UndecodableMedia
from fragdex.speech.cutting import REACH, UNIT
from fragdex.speech.plan import TranscriptionPlan, plan_of
from fragdex.speech.slices import Listener
from fragdex.speech.words import SliceTranscript, SpanNote, Word, in_order, merged
from speech.conftest import SPEECH, Echo

pytestmark = pytest.mark.large

WITH_PAUSES = ["pauses-aac.mp4", "pauses-flac.mp4", "late-opus.mp4"]
SPOKEN = [*WITH_PAUSES, "even-aac.mp4"]
WHOLE = 600_000


@pytest.mark.parametrize("name", SPOKEN)
@pytest.mark.parametrize("work_slice_ms", [5_000, 7_300, 10_000, 30_000, 45_000])
def test_slices_hear_what_the_whole_hears(name, work_slice_ms, hear):
    _, whole = hear(SPEECH / name, WHOLE)
    assert len(whole) == 1
    plan, slices = hear(SPEECH / name, work_slice_ms)
    assert len(slices) == len(plan.slices)
    assert merged(slices).words == merged(whole).words
    assert len(merged(whole).words) > 2


@pytest.mark.parametrize("work_slice_ms", [5_000, 7_300, 10_000, 30_000, 45_000, 60_000])
def test_windows_are_those_of_the_whole(work_slice_ms, hear):
    """For an engine that hears neighbouring utterances at once."""

    class Windows(Echo):
        window_ms = 28_000

    _, whole = hear(SPEECH / "pauses-aac.mp4", WHOLE, engine=Windows())
    plan, slices = hear(SPEECH / "pauses-aac.mp4", work_slice_ms, engine=Windows())
    assert merged(slices).words == merged(whole).words
    assert len(slices) == len(plan.slices)
    _, alone = hear(SPEECH / "pauses-aac.mp4", WHOLE)
    assert len(merged(whole).words) < len(merged(alone).words)


@pytest.mark.parametrize("name", WITH_PAUSES)
def test_the_order_of_slices_does_not_matter_nor_does_hearing_one_twice(name, hear):
    plan, slices = hear(SPEECH / name, 5_000)
    order = [*plan.slices, *plan.slices[1:3]]
    random.Random(1).shuffle(order)
    _, again = hear(SPEECH / name, 5_000, order)
    assert merged(again) == merged(slices)
    for heard in again:  # each on a machine of its own
        _, (alone,) = hear(SPEECH / name, 5_000, [heard.number])
        assert alone.words == heard.words


def test_a_saved_index_does_as_well(tmp_path, hear):
    _, slices = hear(SPEECH / "pauses-aac.mp4", 10_000)
    with fragdex.open_source(SPEECH / "pauses-aac.mp4") as source:
        fragdex.index(source).save(tmp_path / "saved.fidx")
        listener = Listener(fragdex.open_index(tmp_path / "saved.fidx"), source)
        plan = listener.plan(10_000, Echo())
        again = [listener.transcribe_slice(plan, number, Echo()) for number in plan.slices]
    assert merged(again).words == merged(slices).words


def test_without_pauses_no_word_is_lost_or_said_twice(hear):
    """Words here are 20 ms of sound each, so that every cut is hard and shows."""

    class Ticks(Echo):
        def transcribe(self, utterances, language, vocabulary=()):
            return [
                [Word("x", at // 16, at // 16 + 20) for at in range(0, len(sound) - 319, 320)]
                for sound in utterances
            ]

    plan, slices = hear(SPEECH / "even-aac.mp4", 10_000, engine=Ticks())
    words = merged(slices).words
    assert len(slices) == len(plan.slices) == 3
    holes = [b.start_ms - a.end_ms for a, b in pairwise(words)]
    # Utterances begin on frames of 10 ms, the words in them every 20 ms.
    assert max(hole for hole in holes if hole < 300) <= 20


def test_nothing_that_is_heard_at_once_is_long(hear):
    _, (whole,) = hear(SPEECH / "even-aac.mp4", WHOLE)
    assert len(whole.words) == 3
    assert max(word.end_ms - word.start_ms for word in whole.words) <= 19_000


def test_a_late_track_has_no_slices_before_it_begins(hear):
    _, slices = hear(SPEECH / "late-opus.mp4", 5_000)
    assert merged(slices).words[0].start_ms > 6_900
    islands = [(70_000, 70_500), (360_000, 366_000)]
    assert plan_of(1, 30_000, islands, 0.0, None).slices == (23, 119, 120, 121)


@given(st.integers(5_000, 60_000), st.integers(0, 20_000), st.sampled_from([1, 3]))
def test_every_unit_belongs_to_one_slice_near_its_time(work_slice_ms, number, block):
    plan = TranscriptionPlan(1, work_slice_ms, 0, 1 << 40, 0.0, None, (), block)
    first, last = plan.units(number)
    assert plan.units(number + 1)[0] == last
    assert all(plan.slice_of(unit) == number for unit in range(first, last))
    # A word at any moment of a slice's time was heard by a slice around it, wherever its cuts lie.
    low, high = plan.around(number)
    for ms in (number * work_slice_ms, (number + 1) * work_slice_ms - 1):
        for moved in (-10 * REACH, 10 * REACH - 1):
            assert low <= plan.slice_of(max(0, ms + moved) // 10 // UNIT) <= high


def test_a_plan_goes_through_json(hear):
    plan, (heard, *_) = hear(SPEECH / "pauses-flac.mp4", 5_000)
    assert TranscriptionPlan.of_json(plan.as_json()) == plan
    assert SliceTranscript.of_json(heard.as_json()) == heard


def test_a_track_without_samples_has_no_slices(hear):
    name = SPEECH.parent / "hls-init.mp4"
    with fragdex.open_source(name) as source:
        index = fragdex.index(source, exact=True)
        track = next(t for t in index.tracks if t.kind == "audio")
        plan = Listener(index, source, track.id).plan(5_000, Echo())
    assert plan.slices == ()
    plan.ensure_sound(())


def test_a_damaged_middle_is_told_and_the_rest_heard(hear):
    data = (SPEECH / "pauses-aac.mp4").read_bytes()
    table = fragdex.index(data, exact=True).tracks[0].fragments
    row = len(table) // 2
    start, stop = int(table.data_start[row]) + 8, int(table.data_stop[row])
    broken = data[:start] + b"\xff" * (stop - start) + data[stop:]
    plan, slices = hear(broken, 10_000)
    transcript = merged(slices)
    plan.ensure_sound(transcript.missing)
    (gap,) = transcript.missing
    assert gap.reason == "damaged"
    begin, end = (t / 48 for t in (int(table.dts[row]), int(table.dts[row] + table.duration[row])))
    assert begin - 100 < gap.start_ms < gap.end_ms < end + 100
    _, sane = hear(data, 10_000)
    far = [w for w in merged(sane).words if w.end_ms < begin - 2000 or w.start_ms > end + 2000]
    assert set(far) <= set(transcript.words)


def test_encrypted_sound_is_refused_in_the_end(hear):
    plan, slices = hear(SPEECH.parent / "encrypted.mp4", 5_000)
    transcript = merged(slices)
    assert transcript.words == ()
    with pytest.raises(UndecodableMedia, match="encrypted") as error:
        plan.ensure_sound(transcript.missing)
    assert error.value.start == 0


def test_days_that_a_fragment_claims_and_its_samples_do_not_last_are_not_heard():
    data = (SPEECH / "pauses-aac.mp4").read_bytes()
    index = fragdex.index(data, exact=True)
    table = index.tracks[0].fragments
    with fragdex.open_source(data) as source:
        plan = Listener(index, source).plan(5_000, Echo())
    table.cts_end[-1] = table.cts_min[-1] + 48_000 * 3600 * 24 * 400
    with fragdex.open_source(data) as source:
        assert Listener(index, source).plan(5_000, Echo()) == plan


def test_days_of_sound_are_refused():
    with pytest.raises(LimitExceeded, match="48 hours"):
        plan_of(1, 5_000, [(0, 100), (200, 100 * 3600 * 24 * 400)], 0.0, None)


def test_merging_sorts_and_clamps():
    late, early = Word("b", 90, 200), Word("a", 0, 100)
    assert in_order([late, early]) == [Word("a", 0, 90), late]
    slices = [
        SliceTranscript(1, (late,), (SpanNote(300, 400, "damaged"),)),
        SliceTranscript(0, (early,), (SpanNote(200, 300, "damaged"),)),
        SliceTranscript(1, (late,), (SpanNote(300, 400, "damaged"),)),
    ]
    transcript = merged(slices, "en")
    assert [word.text for word in transcript.words] == ["a", "b"]
    assert transcript.missing == (SpanNote(200, 400, "damaged"),)
    assert (transcript.language, transcript.text) == ("en", "a b")
