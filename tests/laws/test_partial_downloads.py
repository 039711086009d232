"""A file of which only the beginning is there: tracks without samples yet refuse nothing."""

from pathlib import Path

import pytest

import fragdex
from fragdex.errors import FragdexError, NoSyncSample

FILM = (Path(__file__).parents[2] / "fixtures/faststart.mp4").read_bytes()
INDEX = fragdex.index(FILM)


def first_stop(track):
    """Where the first sample ends that the edit list shows."""
    samples = track.samples
    shown = samples.cts + samples.duration + int(track.shift) > 0
    return int((samples.offset + samples.size)[shown][0])


FIRST = {track.id: first_stop(track) for track in INDEX.tracks}
# Each place where a track begins to have samples, and one byte before it.
PLACES = sorted({stop - less for stop in FIRST.values() for less in (0, 1)} | {len(FILM)})
USES = {
    "package": fragdex.package,
    "single file": lambda film: fragdex.package(film, single_file=True),
    "fragmented": lambda film: fragdex.view(film, "fragmented"),
    "timeline": lambda film: fragdex.join([film, FILM]),
}


@pytest.mark.parametrize("use", USES)
def test_a_track_without_samples_yet_is_left_out_with_a_finding(use):
    for size in PLACES:
        there = {track for track, stop in FIRST.items() if stop <= size}
        if not there:
            with pytest.raises(FragdexError):
                USES[use](FILM[:size])
            continue
        findings = [str(one) for one in USES[use](FILM[:size]).findings]
        for track in FIRST:
            said = any(f"track {track} (" in one and "is left out" in one for one in findings)
            assert said == (track not in there), (size, findings)


def test_a_track_that_was_named_is_refused_by_name():
    (absent,) = [track for track, stop in FIRST.items() if stop == max(FIRST.values())]
    film = FILM[: min(FIRST.values())]
    for use in (fragdex.package, fragdex.view):
        with pytest.raises(NoSyncSample):
            use(film, tracks=[absent])
