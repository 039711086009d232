"""Boxes inside of another one, changed by their paths."""

from fragdex.boxes import build, make_box, parse_box
from fragdex.boxes.box import with_changes

MOOV = parse_box(
    build(
        make_box(
            "moov",
            children=[
                make_box("mvhd", timescale=1000),
                make_box("trak", children=[make_box("tkhd", track_ID=1), make_box("edts")]),
                make_box("trak", children=[make_box("tkhd", track_ID=2)]),
            ],
        )
    )
)


def test_a_box_without_changes_is_itself():
    assert with_changes(MOOV, {}) is MOOV
    assert with_changes(MOOV, {"udta": lambda _: (), "trak/mdia": lambda _: ()}) is MOOV
    assert with_changes(MOOV, {"mvhd": lambda box: box}) is MOOV


def test_what_a_path_names_is_replaced_and_all_else_stays():
    other = with_changes(MOOV, {"trak/tkhd": lambda tkhd: tkhd.replace(track_ID=9)})
    assert [tkhd["track_ID"] for tkhd in other.find_all("trak/tkhd")] == [9, 9]
    assert other.find("mvhd") is MOOV.find("mvhd")
    assert other.find("trak/edts") is MOOV.find("trak/edts")


def test_a_box_may_go_and_several_may_come():
    gone = with_changes(MOOV, {"trak": lambda trak: trak if trak.find("edts") else ()})
    assert [box.type for box in gone] == ["mvhd", "trak"]
    free = make_box("free")
    more = with_changes(MOOV, {"mvhd": lambda mvhd: [mvhd, free], "trak/edts": lambda _: ()})
    assert [box.type for box in more] == ["mvhd", "free", "trak", "trak"]
    assert more.find("trak/edts") is None


def test_a_function_is_given_a_box_with_what_changed_in_it():
    seen = []
    changes = {
        "trak/edts": lambda _: (),
        "trak": lambda trak: seen.append(len(trak.children)) or trak,
    }
    with_changes(MOOV, changes)
    assert seen == [1, 1]
