"""What is shown at the end of a track: after a moov that was written early, and without time."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np
import pytest

import fragdex
from fragdex.boxes import build, make_box, parse
from fragdex.seeking.numbering import Numbering

FIXTURES = Path(__file__).parents[2] / "fixtures"


def count(data: bytes) -> int:
    track = fragdex.index(data).video
    return len(Numbering(track, track.samples))


def copies(data: bytes) -> dict[str, bytes]:
    """Every kind of copy of everything."""
    index = fragdex.index(data)
    kinds = {
        "clip": fragdex.clip(index, -float("inf"), float("inf"), source=data),
        "fragments": fragdex.view(index, "fragmented", source=data),
        "faststart": fragdex.view(index, "faststart", source=data),
    }
    made = {name: view.read() for name, view in kinds.items()}
    package = fragdex.package(data)
    parts = [name for name in package if name.startswith("v1/")]
    made["package"] = b"".join(package[name].read() for name in parts)
    return made


def hybrid(seconds: float) -> bytes:
    """Samples in the moov and in fragments; the edit list lasts as long as those of the moov.

    The edit list takes the place of what the moov says of its user, so that nothing moves.
    """
    data = (FIXTURES / "frag-samples-in-moov.mp4").read_bytes()
    return with_edits(data, seconds)


def with_edits(data: bytes, seconds: float) -> bytes:
    """Each track with an edit list of its own, and all places moved by its bytes."""
    boxes = parse(data)
    moov = next(box for box in boxes if box.type == "moov")
    traks = []
    grown = 0
    for trak in moov.find_all("trak"):
        entries = [(round(seconds * moov.find("mvhd")["timescale"]), 0, 1, 0)]
        edts = make_box("edts", children=[make_box("elst", entries=entries)])
        traks.append((trak, edts))
        grown += len(build(edts))
    new = []
    for box in moov.children:
        edts = next((edts for trak, edts in traks if trak is box), None)
        if edts is None:
            new.append(box)
            continue
        kept = [one for one in box.children if one.type != "edts"]
        new.append(box.replace(children=[kept[0], edts, *kept[1:]]))
    moved = bytearray(build(moov.replace(children=new)))
    delta = len(moved) - moov.size
    at = moved.find(b"stco")
    while at >= 0:
        for k in range(int.from_bytes(moved[at + 8 : at + 12], "big")):
            place = at + 12 + 4 * k
            (offset,) = struct.unpack_from(">I", moved, place)
            if offset > moov.offset:
                struct.pack_into(">I", moved, place, offset + delta)
        at = moved.find(b"stco", at + 4)
    return data[: moov.offset] + bytes(moved) + data[moov.offset + moov.size :]


def test_fragments_follow_a_moov_whose_edit_list_ends_with_it() -> None:
    whole = (FIXTURES / "frag-samples-in-moov.mp4").read_bytes()
    expected = fragdex.index(whole).video.sample_count
    in_moov = fragdex.index(whole).video.fragments
    data = hybrid(0.5)
    assert (in_moov.flags[0] & 1, in_moov.flags[-1] & 1) == (1, 0)
    assert count(data) == expected
    assert fragdex.index(data).video.segments[-1].stop is None
    for name, copy in copies(data).items():
        assert count(copy) == expected, name


@pytest.mark.parametrize("name", ["all-intra.mp4", "faststart.mp4", "variable-rate.mp4"])
def test_every_copy_ends_where_the_edit_list_does(name: str) -> None:
    data = bytearray((FIXTURES / name).read_bytes())
    at = data.index(b"elst")
    struct.pack_into(">I", data, at + 12, 400)
    source = fragdex.index(bytes(data)).video
    for name, copy in copies(bytes(data)).items():
        track = fragdex.index(copy).video
        numbering = Numbering(track, track.samples)
        # in fragments, what others need to be decoded is shown for a tick at the end
        assert (numbering.durations > 1).sum() == count(bytes(data)), name
        assert abs(track.stop.fraction - source.stop.fraction) <= 0.001


def test_sound_ends_where_the_edit_list_does() -> None:
    data = bytearray((FIXTURES / "aac.m4a").read_bytes())
    struct.pack_into(">I", data, data.index(b"elst") + 12, 1500)
    fragments = fragdex.index(fragdex.view(bytes(data), "fragmented").read())
    assert fragments.audio.stop == 1.5


@pytest.mark.parametrize("pictures", [25, 1])
def test_a_last_picture_without_time_is_shown(pictures: int) -> None:
    data = bytearray((FIXTURES / "all-intra.mp4").read_bytes())
    video = fragdex.index(bytes(data)).video
    ticks, n = int(video.samples.duration[0]), video.sample_count
    at = data.index(b"stts")
    assert struct.unpack_from(">III", data, at + 8) == (1, n, ticks)
    if pictures == 1:
        struct.pack_into(">I", data, at + 16, 0)  # no picture lasts any time
        struct.pack_into(">I", data, at + 12, 1)
        assert count(bytes(data)) >= 1
        assert fragdex.index(fragdex.view(bytes(data), "fragmented").read()).video.sample_count
        return
    # one entry has room for one duration: the last picture takes the place of a table that is free
    boxes = parse(bytes(data))
    assert boxes
    moov = next(box for box in boxes if box.type == "moov")
    stts = moov.find("trak/mdia/minf/stbl/stts")
    new = stts.replace(entries=[(n - 1, ticks), (1, 0)])

    def changed(box):  # type: ignore[no-untyped-def]
        if box is stts:
            return new
        return box.replace(children=[changed(one) for one in box.children]) if box.children else box

    tail = build(changed(moov))
    assert moov.offset + moov.size == len(data)  # moov last
    made = bytes(data[: moov.offset]) + tail
    assert len(fragdex.Frames(io.BytesIO(made))) == n
    assert count(made) == n
    for name, copy in copies(made).items():
        assert np.size(fragdex.index(copy).video.samples.cts) == n, name


def test_frames_takes_an_index() -> None:
    path = FIXTURES / "all-intra.mp4"
    index = fragdex.index(path)
    assert len(fragdex.Frames(index)) == 25
    assert len(fragdex.Frames(fragdex.open_index(index.export("fidx")).with_media(path))) == 25
    with pytest.raises(TypeError, match="index="):
        fragdex.Frames(index, index)
