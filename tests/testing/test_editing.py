"""`fragdex.testing.edit`: what is at the path changes, and nothing else."""

import pytest

import fragdex
from fragdex.boxes import build, find_all, make_box, parse
from fragdex.testing import edit, movie

FILM = movie(3, tracks=2)


def paths(boxes, above=""):
    for box in boxes:
        yield f"{above}{box.type}"
        yield from paths(box.children, f"{above}{box.type}/")


@pytest.mark.parametrize("path", sorted({*paths(parse(FILM))}))
def test_a_box_that_is_put_back_changes_nothing(path):
    seen = []

    def same(box):
        seen.append(box)
        return box.replace()

    assert edit(FILM, path, same) == FILM
    assert seen == list(find_all(parse(FILM), path))


@pytest.mark.parametrize("path", sorted({*paths(parse(FILM))}))
def test_a_box_that_is_dropped_is_gone_and_all_others_stay(path):
    before, after = list(paths(parse(FILM))), list(paths(parse(edit(FILM, path, lambda _: None))))
    assert after == [one for one in before if one != path and not one.startswith(f"{path}/")]


def test_a_number_chooses_one_and_stars_stand_for_any():
    assert [track.id for track in fragdex.index(FILM).tracks] == [1, 2]
    second = edit(FILM, "moov/trak[2]/tkhd", track_ID=9)
    assert [box["track_ID"] for box in find_all(parse(second), "moov/trak/tkhd")] == [1, 9]
    assert edit(FILM, "moov/*/tkhd", track_ID=9) == edit(FILM, "**/tkhd", track_ID=9)
    assert edit(FILM, "**/traf/tfhd", track_ID=9) == edit(FILM, "moof/traf/tfhd", track_ID=9)


def test_several_can_stand_in_the_place_of_one():
    free = make_box("free")
    twice = edit(FILM, "moof[2]", lambda moof: [free, moof, free])
    assert [box.type for box in parse(twice)].count("free") == 2
    assert twice.replace(build(free), b"") == FILM


def test_a_box_is_edited_below_itself():
    moov = next(box for box in parse(FILM) if box.type == "moov")
    assert build(edit(moov, "mvhd", timescale=5)) in edit(FILM, "moov/mvhd", timescale=5)


def test_what_lies_behind_the_last_box_stays():
    assert edit(FILM + b"\0\0\0", "moov/mvhd", timescale=5).endswith(b"\0\0\0")


@pytest.mark.parametrize("path", ["moov/free", "free", "**/free", "moov/trak[3]"])
def test_a_path_without_a_box_is_an_error(path):
    with pytest.raises(LookupError, match="there is no box"):
        edit(FILM, path, lambda _: None)


def test_nothing_to_do_and_two_things_to_do_are_errors():
    with pytest.raises(ValueError, match="one of them"):
        edit(FILM, "moov")
    with pytest.raises(ValueError, match="one of them"):
        edit(FILM, "moov", lambda box: box, timescale=1)
    with pytest.raises(ValueError, match="invalid step"):
        edit(FILM, "moov//trak", lambda _: None)
