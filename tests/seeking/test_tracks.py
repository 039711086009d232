"""A track by its id or by its kind, and a seek of the film."""

from pathlib import Path

import pytest

import fragdex
from fragdex.errors import NoSyncSample, TrackNotFound
from fragdex.fragments.track_info import KINDS, KINDS_OF_HANDLERS, OTHER
from fragdex.testing import movie

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILMS = sorted(p for p in FIXTURES.iterdir() if p.suffix in {".mp4", ".m4a", ".mov", ".m4s"})


@pytest.mark.parametrize("path", FILMS, ids=lambda path: path.name)
def test_a_track_by_its_kind_is_the_first_of_that_kind(path):
    try:
        index = fragdex.index(path)
    except fragdex.FragdexError:
        pytest.skip("not a film that can be indexed")
    for kind in KINDS:
        of_kind = [track for track in index.tracks if track.kind == kind]
        if of_kind:
            assert index.track(kind) is of_kind[0]
        else:
            with pytest.raises(TrackNotFound, match=kind):
                index.track(kind)
        if kind in ("video", "audio"):
            assert getattr(index, kind) is (of_kind[0] if of_kind else None)
    able = [track for track in index.tracks if track.timescale and len(track.sync_samples)]
    if not able:
        with pytest.raises(NoSyncSample):
            index.seek(0)
        return
    pictures = [track for track in able if track.kind == "video"]
    expected = (pictures or able)[0]
    begin = expected.start or 0
    assert index.seek(begin) == expected.seek(begin)


def test_every_handler_has_one_of_the_kinds():
    assert {*KINDS_OF_HANDLERS.values(), OTHER} == {*KINDS}


def test_a_name_that_is_no_kind_is_refused():
    for name in ("1", "Video", "", "vide"):
        with pytest.raises(ValueError, match="by its id or its kind"):
            fragdex.index(movie(1)).track(name)
