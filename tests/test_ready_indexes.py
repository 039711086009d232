"""The sidx and mfra that made files bring along say what the standard means by their fields."""

import pytest

import fragdex
from fragdex.boxes import make_box
from fragdex.boxes.fragments import DEFAULT_BASE_IS_MOOF
from fragdex.fragments.track_info import Edit
from fragdex.testing.files import Mfra, Other, Sidx, make_file
from fragdex.testing.fragments import Fragment
from fragdex.testing.tracks import Moov, Run, Sample, Track, Traf

# Composition offsets stand in the run.
COLUMNS = 0xF01


def fragment(time):
    run = Run((Sample(duration=40, offset=80),), COLUMNS)
    return Fragment((Traf(1, (run,), DEFAULT_BASE_IS_MOOF, tfdt=time),))


@pytest.mark.parametrize(
    ("edits", "shown"),
    [
        ((), (80, 1080)),
        ((Edit(0, 80),), (0, 1000)),
        # 100 ticks of the media are not shown; no time is below 0 (8.8.10.3)
        ((Edit(0, 180),), (0, 900)),
        ((Edit(1000, -1), Edit(0, 80)), (1000, 2000)),
    ],
)
def test_times_of_a_tfra_are_those_of_the_presentation(edits, shown):
    film = make_file(Moov((Track(edits=edits),)), fragment(0), fragment(1000), Mfra())
    (tfra,) = fragdex.boxes.parse(film.data)[-1].find_all("tfra")
    assert tuple(tfra["entries"]["time"].tolist()) == shown
    exact = fragdex.index(film.data, exact=True).track(1)
    # A seek to a listed time finds the listed sample, which may be shown before it, from below 0.
    assert [exact.seek(time / 1000).sample for time in shown] == [0, 1]


def test_without_a_moov_the_ticks_of_a_sidx_are_those_of_the_media():
    styp = make_box("styp", major_brand="msdh")
    film = make_file(
        Other(styp), Sidx(1, ((2, 3), (3, 4)), timescale=1000), fragment(0), fragment(40)
    )
    (sidx,) = (box for box in fragdex.boxes.parse(film.data) if box.type == "sidx")
    assert sidx["earliest_presentation_time"] == 80
    assert sidx["references"]["subsegment_duration"].tolist() == [40, 40]
