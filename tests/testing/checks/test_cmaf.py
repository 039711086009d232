"""`check_cmaf`: each constraint names what breaks it, and nothing else is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.boxes import build, make_box, parse
from fragdex.fragments.track_info import Edit
from fragdex.testing import check_cmaf, edit, make_file
from fragdex.testing.files import Brand
from fragdex.testing.fragments import Fragment
from fragdex.testing.tracks import NON_SYNC, SYNC, Moov, Run, Sample, Track, Traf

FIXTURES = Path(__file__).parents[3] / "fixtures"
COLUMNS = 0x701
STYP = make_box("styp", major_brand="cmfs", compatible_brands=("cmfs", "cmff"))


def header(*, brands=("cmfc", "iso6"), **about):
    return make_file(Brand(brands), Moov((Track(1, "video", **about),))).data


def segment(number=1, time=0, *, samples=None, flags=COLUMNS, brand=True, **about):
    """One fragment of five samples of 10 ticks."""
    shown = (Sample(20, 10, SYNC), *(Sample(20, 10, NON_SYNC),) * 4) if samples is None else samples
    traf = Traf(1, (Run(shown, flags),), tfdt=time)
    before = (STYP,) if brand else ()
    return Fragment((traf,), before=before, number=number, **about).lay(0, {}, {}).data


HEADER = header()
SEGMENTS = [segment(1, 0), segment(2, 50), segment(3, 100)]


def rules(*arguments):
    return {one.rule for one in check_cmaf(*arguments)}


def test_what_breaks_no_rule_is_not_named():
    assert check_cmaf(HEADER, SEGMENTS) == []
    # chunks: several moofs in a segment, of which the first begins with a sync sample
    later = segment(2, 50, samples=(Sample(5, 10, NON_SYNC),), brand=False)
    assert check_cmaf(HEADER, [SEGMENTS[0] + later, segment(3, 60)]) == []
    assert check_cmaf(header(edits=(Edit(0, 20),)), SEGMENTS) == []
    assert check_cmaf(header(brands=("cmf2",)), SEGMENTS) == []


def without(data, path):
    return edit(data, path, lambda _: None)


STBL = "moov/trak/mdia/minf/stbl"
HEADERS = [
    ("brand", header(brands=("iso6",))),
    ("ftyp", without(HEADER, "ftyp")),
    ("header-media", HEADER + build(make_box("mdat", data=b""))),
    ("moov", without(HEADER, "moov")),
    ("mvex", without(without(HEADER, "moov/mvex"), "moov/trak")),
    ("trex", header(trex=None)),
    ("duration", edit(HEADER, "moov/mvhd", duration=5)),
    ("duration", edit(HEADER, "moov/trak/mdia/mdhd", duration=5)),
    ("timescale", header(timescale=0)),
    ("sample-tables", without(HEADER, f"{STBL}/stsc")),
    ("no-samples", edit(HEADER, f"{STBL}/stts", entries=[(1, 1)])),
    ("sample-entry", without(HEADER, f"{STBL}/stsd/avc1")),
    ("edit-list", header(edits=(Edit(0, 0), Edit(0, 5)))),
    ("edit-list", header(edits=(Edit(0, -1),))),
    ("edit-list", header(edits=(Edit(7, 0),))),
    ("edit-list", header(edits=(Edit(0, 0, 2),))),
    ("edit-list", header(edits=(Edit(0, 0),), brands=("cmf2",))),
    ("boxes", HEADER[:-1]),
]


@pytest.mark.parametrize(
    ("rule", "data"), HEADERS, ids=[f"{n}-{rule}" for n, (rule, _) in enumerate(HEADERS)]
)
def test_a_header_that_breaks_a_rule_is_named_by_it(rule, data):
    expected = {"mvex": {"mvex", "one-track"}}.get(rule, {rule})
    assert rules(data) == expected


def test_a_header_has_one_track_and_lists_no_sync_samples():
    two = make_file(Brand(("cmfc",)), Moov((Track(1), Track(2, "audio")))).data
    assert "one-track" in rules(two)
    stss = make_box("stss", entries=[])
    listed = edit(HEADER, STBL, lambda box: box.replace(children=[*box.children, stss]))
    assert rules(listed) == {"stss"}


ONE = SEGMENTS[0]
EMPTY = build(make_box("free"))
PLACE = ONE.index(b"mdat") - 4
TWO = Traf(1, (Run((Sample(),), COLUMNS),)), Traf(2, (Run((Sample(),), COLUMNS),))
SHIFTED = segment(1, 0, flags=COLUMNS | 0x800)
BROKEN = [
    ("moof", [build(STYP)]),
    ("styp-brand", [ONE.replace(b"cmfs", b"isom").replace(b"cmff", b"isom")]),
    ("styp-place", [build(make_box("free")) + ONE]),
    ("order", [ONE[:PLACE] + EMPTY + ONE[PLACE:]]),
    ("segment-moov", [build(parse(HEADER)[1]) + segment(1, brand=False)]),
    ("mdat", [build(make_box("mdat", data=b"")) + segment(1, brand=False)]),
    ("no-mdat", [ONE[:PLACE]]),
    ("track-id", [edit(ONE, "moof/traf/tfhd", track_ID=9)]),
    ("default-base", [edit(ONE, "moof/traf/tfhd", flags=0)]),
    ("mfhd", [without(ONE, "moof/mfhd")]),
    ("tfdt", [without(ONE, "moof/traf/tfdt")]),
    ("trun", [without(ONE, "moof/traf/trun")]),
    ("tfhd", [without(ONE, "moof/traf/tfhd")]),
    ("box-form", [edit(ONE, "moof/traf/trun", version=2)]),
    ("sequence-number", [ONE, segment(1, 50)]),
    ("continuity", [ONE, segment(2, 49)]),
    ("continuity", [ONE, segment(2, 51)]),
    ("first-sync", [segment(samples=(Sample(5, 10, NON_SYNC),))]),
    ("sample-duration", [segment(samples=(Sample(5, 0, SYNC),))]),
    ("sample-flags", [segment(samples=(Sample(5, 1, 0x01000000),))]),
    ("sample-place", [edit(ONE, "moof/traf/trun", data_offset=7)]),
    ("boxes", [ONE[:-1]]),
    ("one-traf", [Fragment(TWO, number=1).lay(0, {}, {}).data]),
    ("data-offset", [segment(1, flags=COLUMNS & ~1)]),
]
ALSO = {
    # without these boxes, sizes change and with them where the samples are, or nothing is found
    "mfhd": {"sample-place"},
    "tfdt": {"sample-place"},
    "order": {"mdat"},
    "one-traf": {"track-id"},
    "data-offset": {"sample-place"},
}


@pytest.mark.parametrize(
    ("rule", "segments"),
    BROKEN,
    ids=[f"{n}-{rule}" for n, (rule, _) in enumerate(BROKEN)],
)
def test_a_segment_that_breaks_a_rule_is_named_by_it(rule, segments):
    broken = rules(HEADER, segments)
    assert rule in broken
    assert broken - {rule} <= ALSO.get(rule, set())


def test_brand_cmf2_has_signed_composition_offsets():
    assert rules(HEADER, [SHIFTED]) == set()
    assert rules(header(brands=("cmf2",)), [SHIFTED]) == {"trun-version"}


def test_a_count_that_nothing_stands_behind_is_answered():
    traf = Traf(1, (Run((Sample(0, 0),), 1),))
    data = Fragment((traf,), number=1).lay(0, {}, {}).data
    data = edit(data, "moof/traf/trun", sample_count=2**32 - 1)
    assert rules(HEADER, [data]) == {"boxes"}


def test_a_base_data_offset_is_named():
    traf = Traf(1, (Run((Sample(20, 10),), COLUMNS),), flags=0x020001)
    data = Fragment((traf,), number=1).lay(0, {}, {}).data
    assert rules(HEADER, [data]) == {"base-data-offset"}


def test_samples_that_lie_in_each_other_are_named():
    runs = (Run((Sample(20, 10),), COLUMNS), Run((Sample(20, 10, NON_SYNC),), COLUMNS))
    data = Fragment((Traf(1, runs),), number=1, order=(1, 0)).lay(0, {}, {}).data
    assert rules(HEADER, [data]) == {"sample-overlap"}


def test_a_violation_names_segment_box_and_offset():
    (one,) = check_cmaf(HEADER, [SEGMENTS[0], segment(2, 49)])
    assert one.where == f"segment 1: moof at {len(build(STYP))}"


def test_segments_of_a_known_packager_break_no_more_than_the_brands():
    names = ("dash-segment-1.m4s", "dash-segment-2.m4s")
    broken = rules(
        (FIXTURES / "dash-init.mp4").read_bytes(), [(FIXTURES / n).read_bytes() for n in names]
    )
    assert broken == {"brand", "styp-brand"}


@given(st.data())
def test_bytes_that_change_are_answered(data):
    whole = bytearray(HEADER + ONE)
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] = data.draw(st.integers(0, 255))
    check_cmaf(bytes(whole[: len(HEADER)]), [bytes(whole[len(HEADER) :])])
