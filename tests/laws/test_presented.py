"""Which track is the film is decided once: whatever takes one takes the same."""

import io

import av
import numpy as np
import pytest

import fragdex
import fragdex.media
from decoding.filming import luma_of, number_in
from fragdex.boxes import build, make_box, parse
from fragdex.formats.fidx import open_index

FPS, COUNT = 10, 5
WRONG = 64


def film_of_two():
    """Two tracks of pictures, the first of which says numbers from 64 on, and two of sound."""
    file = io.BytesIO()
    flags = {"movflags": "empty_moov+frag_keyframe+default_base_moof"}
    with av.open(file, "w", format="mp4", options=flags) as container:
        pictures = [container.add_stream("libx264", rate=FPS) for _ in range(2)]
        sounds = [container.add_stream("aac", rate=16000, layout="mono") for _ in range(2)]
        for stream in pictures:
            stream.width, stream.height, stream.pix_fmt = 256, 48, "yuv420p"
            stream.options = {"preset": "ultrafast", "x264-params": "bframes=0"}
        for number in range(COUNT):
            for stream, base in zip(pictures, (WRONG, 0), strict=True):
                planes = np.full((72, 256), 128, np.uint8)
                planes[:48] = luma_of(number + base, (256, 48))
                container.mux(stream.encode(av.VideoFrame.from_ndarray(planes, format="yuv420p")))
        for stream, level in zip(sounds, (0, 0.5), strict=True):
            data = np.full((1, 8000), level, np.float32)
            frame = av.AudioFrame.from_ndarray(data, format="fltp", layout="mono")
            frame.sample_rate = 16000
            container.mux(stream.encode(frame))
        for stream in (*pictures, *sounds):
            container.mux(stream.encode())
    return file.getvalue()


def with_traks(film, change):
    """The film with each trak changed: its fragments count from their moofs."""
    boxes = []
    for box in parse(film):
        if box.type == "moov":
            children = [change(c) if c.type == "trak" else c for c in box.children]
            box = box.replace(children=children)
        boxes.append(box)
    return build(boxes)


def changed(box, path, change):
    if not path:
        return change(box)
    children = [changed(c, path[1:], change) if c.type == path[0] else c for c in box.children]
    return box.replace(children=children)


def number_of(trak):
    return trak.find("tkhd")["track_ID"]


def flagged(*enabled, group=0):
    def change(trak):
        on = number_of(trak) in enabled
        tkhd = lambda box: box.replace(flags=7 if on else 6, alternate_group=group)  # noqa: E731
        return changed(trak, ("tkhd",), tkhd)

    return change


def referring(first, kind, other):
    def change(trak):
        trak = flagged(1, 2, 3, 4)(trak)
        if number_of(trak) != first:
            return trak
        tref = make_box("tref", children=[make_box(kind, parent="tref", track_IDs=[other])])
        return trak.replace(children=[*trak.children, tref])

    return change


def auxv(trak):
    trak = flagged(1, 2, 3, 4)(trak)
    if number_of(trak) != 1:
        return trak
    return changed(trak, ("mdia", "hdlr"), lambda box: box.replace(handler_type="auxv"))


@pytest.fixture(scope="module")
def plain():
    return film_of_two()


CASES = {
    "disabled": (flagged(2, 4), True),
    "disabled alternatives": (flagged(2, 4, group=1), False),
    "auxl": (referring(1, "auxl", 2), True),
    "vdep": (referring(1, "vdep", 2), True),
    "thmb": (referring(1, "thmb", 2), True),
    "chap": (referring(2, "chap", 1), True),
    "auxv": (auxv, True),
}


@pytest.mark.parametrize("case", CASES)
def test_every_reader_takes_the_track_that_is_presented(plain, case, tmp_path):
    change, is_left_out = CASES[case]
    film = with_traks(plain, change)
    index = fragdex.index(film, exact=True)
    index.save(tmp_path / "film.fidx", samples=True)
    saved = open_index(tmp_path / "film.fidx")
    for one in (index, saved):
        assert (one.video.id, one.track("video").id, one.seek(0).track) == (2, 2, 2)
    with fragdex.Frames(film) as frames:
        assert [number_in(f[:, :, 0]) for f in frames[:].data] == list(range(COUNT))
    assert fragdex.media.thumbnail(film, 0).data == fragdex.media.thumbnail(film, 0, track=2).data
    package = fragdex.package(film)
    inits = [name for name in package if name.startswith("v") and name.endswith("init.mp4")]
    assert len(inits) == (1 if is_left_out else 2)
    assert any("track 1 (video) is left out" in found for found in package.findings) == is_left_out
    named = fragdex.package(film, tracks=[1])
    assert any(name.startswith("v") for name in named)


@pytest.mark.parametrize("group", [0, 1])
def test_every_reader_takes_the_sound_that_is_enabled(plain, group):
    film = with_traks(plain, flagged(2, 4, group=group))
    index = fragdex.index(film)
    assert index.audio.id == 4
    assert np.array_equal(
        fragdex.media.audio(film, 0, 0.4), fragdex.media.audio(film, 0, 0.4, track=4)
    )
    assert fragdex.media.peaks(film).values.max() > 30


def test_of_tracks_that_are_all_disabled_the_first_is_presented(plain):
    index = fragdex.index(with_traks(plain, flagged()))
    assert [track.info.auxiliary for track in index.tracks] == [None] * 4
    assert (index.video.id, index.audio.id) == (1, 3)
