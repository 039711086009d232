"""Tables that contradict each other: what is taken, and what is said."""

import struct

import pytest

import fragdex
from fragdex.boxes import build, make_box
from fragdex.errors import NoSyncSample
from fragdex.fragments.track_info import Edit
from fragdex.testing import made_movie, movie
from fragdex.testing.files import Brand, Chunks, make_file
from fragdex.testing.tracks import Moov, Sample, Track

PLAIN = movie(3, tracks=2, fragmented=False)


def body(data, code, nth=1):
    """Where the nth box of this code has its version and flags."""
    at = -1
    for _ in range(nth):
        at = data.index(code, at + 1)
    return at + 4


def changed(data, at, code, *values):
    out = bytearray(data)
    struct.pack_into(code, out, at, *values)
    return bytes(out)


def codes(index):
    return [(finding.code, finding.track) for finding in index.findings]


def test_sync_samples_that_count_from_zero_are_the_right_ones():
    at = body(PLAIN, b"stss") + 8
    numbers = struct.unpack_from(">3I", PLAIN, at)
    index = fragdex.index(changed(PLAIN, at, ">3I", *(number - 1 for number in numbers)))
    assert codes(index) == [("stss-from-zero", 1)]
    assert index.track(1).samples == fragdex.index(PLAIN).track(1).samples


def test_of_two_tracks_of_one_number_the_first_counts():
    index = fragdex.index(changed(PLAIN, body(PLAIN, b"tkhd", 2) + 12, ">I", 1))
    assert codes(index) == [("same-track-id", 1)]
    whole = fragdex.index(PLAIN)
    assert [(t.id, t.codec) for t in index.tracks] == [(1, whole.track(1).codec)]
    assert index.track(1).samples == whole.track(1).samples


@pytest.mark.parametrize("kind", ["fragmented", "faststart", "tracks", "clip", "join", "package"])
def test_copies_name_the_second_track_of_one_number(kind):
    data = changed(PLAIN, body(PLAIN, b"tkhd", 2) + 12, ">I", 1)
    make = {
        "clip": lambda: fragdex.clip(data, 0, 1),
        "join": lambda: fragdex.join([data]),
        "package": lambda: fragdex.package(data),
    }.get(kind, lambda: fragdex.view(data, kind))
    (said,) = [one for one in make().findings if "the other track 1" in one]
    assert said.code == "left-out"


@pytest.mark.parametrize("code", ["mvhd", "tkhd", "mdhd", "stsz", "stco"])
def test_of_a_box_that_comes_again_the_first_counts(code):
    def twice(box):
        children = []
        for child in box.children:
            children.append(twice(child))
            if child.type == code:
                children.append(child)
        return box.replace(children=children)

    (moov,) = (box for box in fragdex.boxes.parse(PLAIN) if box.type == "moov")
    data = changed(PLAIN, moov.offset + 4, "4s", b"free") + build(twice(moov))
    index = fragdex.index(data)
    assert {code for code, _ in codes(index)} == {"repeated-box"}
    assert index.track(1).samples == fragdex.index(PLAIN).track(1).samples


def test_segments_of_a_file_without_ftyp_have_one():
    """Players of segments require it (4.3); QuickTime files of old have none."""
    size = int.from_bytes(PLAIN[:4], "big")
    data = changed(PLAIN, 4, "4s", b"free")
    assert data[size + 4 : size + 8] != b"ftyp"
    package = fragdex.package(data)
    inits = [package[name].read() for name in package if name.endswith("init.mp4")]
    assert inits
    assert {made[4:8] for made in (*inits, fragdex.view(data).read())} == {b"ftyp"}


@pytest.mark.parametrize(
    ("location", "code", "count"),
    [("other.mp4", "media-elsewhere", 0), (None, "media-unnamed", 15)],
)
def test_media_in_another_file(location, code, count):
    (moov,) = (box for box in fragdex.boxes.parse(PLAIN) if box.type == "moov")
    named = {} if location is None else {"location": location}

    def pointed(box):
        if box.type == "dref":
            return box.replace(children=[make_box("url ", flags=0, **named)])
        return box.replace(children=[pointed(child) for child in box.children])

    moov_bytes = build(pointed(moov))
    # Chunks stay where they are: the moov goes behind them.
    data = changed(PLAIN, moov.offset + 4, "4s", b"free") + moov_bytes
    index = fragdex.index(data)
    assert codes(index) == [(code, 1), (code, 2)]
    assert index.track(1).sample_count == count
    if location:
        assert location in index.findings[0].message


def test_of_some_samples_in_another_file_it_is_said_which():
    """A track may have entries here and elsewhere; what is answered is not what it seems."""
    (moov,) = (box for box in fragdex.boxes.parse(PLAIN) if box.type == "moov")

    def pointed(box):
        if box.type == "dref":
            elsewhere = make_box("url ", flags=0, location="other.mp4")
            return box.replace(children=[make_box("url ", flags=1), elsewhere])
        if box.type == "stsd":
            (entry,) = box.children
            second = entry.replace(data_reference_index=2)
            return box.replace(children=[entry, second])
        return box.replace(children=[pointed(child) for child in box.children])

    data = changed(PLAIN, moov.offset + 4, "4s", b"free") + build(pointed(moov))
    index = fragdex.index(data)
    assert codes(index) == [("media-elsewhere", 1), ("media-elsewhere", 2)]
    for finding in index.findings:
        assert "of sample entry 2 are in another file, 'other.mp4'" in finding.message
        assert "left out" not in finding.message
    assert index.track(1).sample_count == 15


def test_a_fragment_that_comes_twice_is_told():
    film = made_movie(3)
    pieces = [film.data[start:stop] for start, stop in film.spans]
    index = fragdex.index(b"".join([*pieces[:3], pieces[2], *pieces[3:]]), exact=True)
    assert codes(index) == [("time-again", 1)]
    assert index.track(1).sample_count == 20


@pytest.mark.parametrize(
    ("code", "at", "value", "finding"),
    [
        (b"stsd", 4, 0, "stsd-count"),
        (b"stsz", 8, 14, "chunks-without-samples"),
        (b"stsc", 16, 7, "no-description"),
        (b"stco", 8, 5, "data-outside"),
        (b"stts", 8, 3, "stts-short"),
        (b"stts", 8, 99, "stts-long"),
    ],
)
def test_each_contradiction_has_its_name(code, at, value, finding):
    index = fragdex.index(changed(PLAIN, body(PLAIN, code) + at, ">I", value))
    assert (finding, 1) in codes(index)


@pytest.mark.parametrize(
    ("duration", "offset", "edit", "why"),
    [
        (5, -50, None, "all of track 1 lies before time 0, by its composition offsets"),
        (5, 0, 400, "the edit list hides all of track 1"),
    ],
)
def test_a_track_that_shows_nothing_says_why(duration, offset, edit, why):
    edits = () if edit is None else (Edit(0, edit),)
    chunk = (Sample(9, duration, offset=offset % 2**32),)
    track = Track(1, edits=edits, chunks=(chunk,), ctts=1)
    moov = Moov((track,), fragmented=False)
    data = make_file(Brand(("isom",)), Chunks(((1, 0),)), moov).data
    with pytest.raises(NoSyncSample, match=why):
        fragdex.view(fragdex.index(data), source=data)
