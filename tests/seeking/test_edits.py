"""What an edit list presents: where a track begins and ends, and how long a file is."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import fragdex
from fragdex.fragments.track_info import Edit, Segment, TrackInfo

FIXTURES = Path(__file__).parents[2] / "fixtures"


def info(*edits: Edit) -> TrackInfo:
    return TrackInfo(1, "vide", "video", 1000, "avc1", None, edits=edits)


def test_a_list_is_segments_with_gaps_between_them() -> None:
    edits = info(Edit(5, -1), Edit(20, 300), Edit(5, -1), Edit(10, 0), Edit(10, 700, 0.0))
    assert edits.segments(10) == (
        Segment(Fraction(1, 2), Fraction(5, 2), 300),
        Segment(Fraction(3), Fraction(4), 0),
        Segment(Fraction(4), Fraction(5), 700, Fraction(0)),
    )
    assert info().segments(10) == ()
    assert info(Edit(0, 40), Edit(9, 0)).segments(10) == (Segment(Fraction(0), None, 40),)
    assert info(Edit(9, 40)).segments(0) == (Segment(Fraction(0), None, 40),)


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("aac.m4a", [(0, 2)]),  # priming is hidden
        ("faststart.mp4", [(0, 2), (0, 2)]),
        ("audio-late.mp4", [(0, 2), (Fraction("0.436"), Fraction("2.5"))]),
        ("no-edit-list.mp4", None),
        ("frag-delay-moov.mp4", [(0, 2), (0, 2)]),
        ("made/elst-empty.mp4", [(Fraction("0.5"), Fraction("0.86"))]),
        ("made/elst-several.mp4", [(0, Fraction("0.35"))]),
    ],
)
@pytest.mark.parametrize("saved", [False, True], ids=["boxes", "saved"])
def test_a_track_spans_what_is_presented(name: str, seconds: list, saved: bool) -> None:
    index = fragdex.index(FIXTURES / name)
    if saved:
        index = fragdex.open_index(index.export("fidx"))
    if seconds is None:
        firsts = [int(track.fragments.cts_min.min()) for track in index.tracks]
        pairs = zip(index.tracks, firsts, strict=True)
        assert all(track.start == track.presentation(first) for track, first in pairs)
        return
    spans = [(track.start.fraction, track.stop.fraction) for track in index.tracks]
    assert spans == seconds
    assert index.duration == float(max(b for _, b in spans) - min(a for a, _ in spans))


def test_an_edit_that_ends_early_hides_the_rest() -> None:
    index = fragdex.index(FIXTURES / "faststart.mp4")
    track = index.track(1)
    cut = replace(track.info, edits=(Edit(500, 1024 + 512),))
    shorter = fragdex.Track(
        cut, track.fragments, track.sync_samples, shift=cut.shift(1000), movie_timescale=1000
    )
    assert (shorter.start, shorter.stop) == (0, Fraction(1, 2))
    assert type(shorter.start.ticks) is type(shorter.stop.ticks) is int


def test_an_edit_between_two_ticks_is_exact() -> None:
    index = fragdex.index(FIXTURES / "faststart.mp4")
    track = index.track(1)
    cut = replace(track.info, edits=(Edit(1, 1024),))
    shorter = fragdex.Track(
        cut, track.fragments, track.sync_samples, shift=cut.shift(700), movie_timescale=700
    )
    assert shorter.stop == Fraction(1, 700)
    assert shorter.stop.ticks == Fraction(track.timescale, 700)
