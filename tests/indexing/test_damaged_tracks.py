"""A moov with one damaged track: the others are indexed, and the damage is told."""

import struct
from pathlib import Path

import pytest

import fragdex
import fragdex.media
from fragdex.errors import MalformedBox
from fragdex.indexing import moov
from fragdex.testing import movie
from laws import brute

WHOLE = movie(3, tracks=2, fragmented=False)


def size_of(data, at):
    return struct.unpack_from(">I", data, at)[0]


def resized(data, at, size):
    """A box with another size; what it gave up becomes free space."""
    rest = size_of(data, at) - size
    free = struct.pack(">I4s", rest, b"free") if rest >= 8 else b""
    head = struct.pack(">I", size) + data[at + 4 : at + min(8, size)]
    return (
        data[:at] + head + data[at + len(head) : at + size] + free + data[at + size + len(free) :]
    )


def counted(data, at):
    """A table that claims more rows than it has bytes for."""
    return data[: at + 12] + b"\xff" * 4 + data[at + 16 :]


def second(code):
    """Place of a box in the second track."""
    return WHOLE.index(code, WHOLE.index(code) + 1) - 4


def codes(index):
    return [(finding.code, finding.track) for finding in index.findings]


@pytest.mark.parametrize(
    "damaged",
    [
        resized(WHOLE, second(b"stsz"), 8),
        resized(WHOLE, second(b"stbl"), 1 << 20),
        counted(WHOLE, second(b"stco")),
        counted(WHOLE, second(b"stts")),
    ],
    ids=["stsz of 8 bytes", "stbl past its parent", "stco of too many rows", "stts likewise"],
)
def test_a_track_without_its_tables_has_no_samples(damaged):
    index, whole = fragdex.index(damaged), fragdex.index(WHOLE)
    assert codes(index) == [("damaged-track", 2)]
    assert brute.rows(index.track(1).samples) == brute.rows(whole.track(1).samples)
    assert len(index.track(2).samples) == len(index.track(2).fragments) == 0
    assert (index.track(2).kind, index.track(2).timescale) == ("audio", 48000)
    assert index.complete
    with pytest.raises(MalformedBox):
        fragdex.index(damaged, strict=True)


def test_fragments_behind_a_damaged_table_are_indexed():
    data = movie(3)
    index = fragdex.index(resized(data, data.index(b"stsz") - 4, 8), exact=True)
    assert codes(index) == [("damaged-track", 1)]
    brute.same_tables(index.track(1), fragdex.index(data, exact=True).track(1))


def test_a_file_with_its_own_index_tells_it_too():
    data = movie(3, sidx=True)
    index = fragdex.index(resized(data, data.index(b"stsz") - 4, 8))
    assert index.how.method == "sidx"
    assert codes(index) == [("damaged-track", 1)]


def test_a_track_whose_header_is_lost_is_left_out():
    index = fragdex.index(resized(WHOLE, second(b"tkhd"), 1 << 20))
    assert [track.id for track in index.tracks] == [1]
    assert codes(index) == [("damaged-track", None)]


def test_a_box_without_samples_costs_no_samples():
    index, whole = fragdex.index(counted(WHOLE, second(b"stsd") - 4)), fragdex.index(WHOLE)
    assert index.track(2).samples == whole.track(2).samples


def test_damage_outside_of_every_track_is_refused():
    with pytest.raises(MalformedBox) as caught:
        fragdex.index(resized(WHOLE, WHOLE.index(b"mvhd") - 4, 1 << 20))
    assert caught.value.path == "moov/mvhd"


def test_a_moov_that_is_all_damage_is_refused():
    data = movie(1, tracks=moov.MAX_DAMAGED + 1, fragmented=False)
    at = -1
    while (at := data.find(b"stsz", at + 1)) > 0:
        data = resized(data, at - 4, 8)
    with pytest.raises(MalformedBox):
        fragdex.index(data)


FILM = (Path(__file__).parents[2] / "fixtures/faststart.mp4").read_bytes()
BOXES = (b"mdia", b"mdhd", b"minf", b"stbl", b"stsd", b"stts", b"stsc", b"stsz", b"stco")
DAMAGES = {
    "short": lambda data, at: resized(data, at, 8),
    "past": lambda data, at: struct.pack(">I", 1 << 20).join((data[:at], data[at + 4 :])),
}
USES = {
    "picture": lambda film: fragdex.media.thumbnail(film, 0.5).data,
    "frames": lambda film: fragdex.Frames(film)[3:5].data.tobytes(),
    "sound": lambda film: fragdex.media.audio(film, 0, 1).tobytes(),
    "peaks": lambda film: fragdex.media.peaks(film).values.tobytes(),
    "clip of pictures": lambda film: fragdex.clip(film, 0, 1, tracks=[1]).read().split(b"mdat")[1:],
    "package of pictures": lambda film: [
        view.read() for name, view in fragdex.package(film, tracks=[1]).items() if "m4s" in name
    ],
}


def test_damage_in_one_track_disables_no_other():
    """Readers of the moov see what the index saw: without the damaged box."""
    whole = {name: use(FILM) for name, use in USES.items()}
    wrong = []
    for kind in BOXES:
        for number, kept in ((0, ("sound", "peaks")), (1, set(USES) - {"sound", "peaks"})):
            at = FILM.index(b"trak")
            at = FILM.index(kind, at if number == 0 else FILM.index(b"trak", at + 4)) - 4
            for damage, change in DAMAGES.items():
                damaged = change(FILM, at)
                assert fragdex.index(damaged).findings
                for use in kept:
                    try:
                        same = USES[use](damaged) == whole[use]
                    except fragdex.FragdexError as error:
                        same = error
                    if same is not True:
                        wrong.append((kind, number, damage, use, same))
    assert wrong == []
