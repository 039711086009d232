"""What is remembered from file to file changes nothing of what is read of one."""

from pathlib import Path

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from fragdex.box_header import read_header
from fragdex.boxes import Box, parse_box, parsing
from fragdex.errors import FragdexError
from fragdex.indexing import movie
from fragdex.indexing.moov import ALIKE, LEFT

FIXTURES = Path(__file__).parents[2] / "fixtures"


def moov_of(path):
    """The bytes of the first moov of a file, or None."""
    data, at = path.read_bytes(), 0
    while header := read_header(data, at):
        if header.type == b"moov":
            return data[at : at + header.size]
        at += header.size or len(data)
    return None


MOOVS = [
    moov
    for path in sorted(FIXTURES.glob("*.m*"))
    if (moov := moov_of(path)) and int.from_bytes(moov[:4], "big") == len(moov)
]


def places(box):
    """Where a box and those inside of it stand, which equal boxes may differ in."""
    inside = [places(child) for child in box.children]
    return box.type, box.offset, box.size, box.header_size, box.misfit, inside


def outcome(data, offset, parent, **given):
    """A box, or the error that it is refused with."""
    try:
        box = parse_box(data, parent, offset=offset, leave=LEFT, **given)
    except FragdexError as error:
        return type(error), str(error), error.offset, error.path
    return box


@given(
    st.sampled_from(MOOVS),
    st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=2),
    st.sampled_from([0, 40, 1 << 40]),
)
def test_a_moov_is_read_alike_whatever_was_read_before(moov, changes, offset):
    data = bytearray(moov)
    for place, value in changes:
        data[8 + place % (len(data) - 8)] = value
    data = bytes(data)
    true = outcome(data, offset, None)
    for _ in range(2):
        moov_box = outcome(data, offset, None, alike=ALIKE)
        if not isinstance(true, Box):
            event("refused")
            assert moov_box == true
            continue
        assert moov_box == true
        assert places(moov_box) == places(true)
        assert movie.read_movie(moov_box, data) == movie.read_movie(true)


def test_what_is_remembered_of_a_file_does_not_hold_its_bytes():
    moov = max(MOOVS, key=len)
    box = parse_box(moov, leave=LEFT, alike=ALIKE)
    stsd = box.find("trak/mdia/minf/stbl/stsd")
    assert stsd.size <= parsing.MOST_ALIKE_BYTES
    left = [one["data"] for entry in stsd.children for one in entry.children if one.opaque]
    assert left
    assert all(len(view.obj) == stsd.size for view in left)


def test_boxes_of_one_root_are_counted_though_they_were_read_before(monkeypatch):
    moov = MOOVS[0]
    parse_box(moov, leave=LEFT, alike=ALIKE)
    monkeypatch.setattr(parsing, "MAX_BOXES_PER_ROOT", 9)
    with pytest.raises(FragdexError, match="too many boxes"):
        parse_box(moov, leave=LEFT, alike=ALIKE)


def test_sample_entries_that_are_remembered_are_few(monkeypatch):
    monkeypatch.setattr(movie, "_DESCRIBED", known := {})
    monkeypatch.setattr(movie, "MOST_DESCRIBED", 3)
    for moov in MOOVS:
        movie.read_movie(parse_box(moov, leave=LEFT), moov)
        assert len(known) <= 3
