"""Pictures become slices, slices a file that players and this library's index read."""

import hashlib
from fractions import Fraction
from functools import partial
from itertools import pairwise

import av
import numpy as np
import pytest

import fragdex
from fragdex.errors import BrowserGone
from fragdex.rendering.browser.model import PageView
from fragdex.rendering.encode import Encoding
from fragdex.rendering.join import join
from fragdex.rendering.outputs import Film
from fragdex.rendering.pictures import Pictures
from rendering.frames.numbers import decoded, plain_png, plane, png, read_rows

NTSC = Fraction(30000, 1001)
EVERY = 3


def encoded(path, view, pictures):
    """What opens a slice of these pictures."""
    with Encoding(path, view) as encoding:
        for picture in pictures:
            encoding.frame(picture)
        assert encoding.finish() == len(pictures)
    return partial(path.open, "rb")


def slices(folder, view, borders):
    """Slices whose pictures show their number in the whole; two of three are the one before."""
    parts = []
    for first, stop in pairwise(borders):
        pictures = [png(i) if i == first or i % EVERY == 0 else None for i in range(first, stop)]
        parts.append(encoded(folder / f"{first}.mp4", view, pictures))
    return parts


def shown(i, borders):
    """The number that is seen in frame i of those slices."""
    return max(i - i % EVERY, *(border for border in borders if border <= i), 0)


def tone(seconds, *, beeps=(), piece=7777):
    """Silence with beeps of 10 ms, in pieces of an odd length."""
    samples = np.zeros((round(seconds * 48_000), 2), np.float32)
    wave = 0.8 * np.sin(np.arange(480) * 2 * np.pi * 2000 / 48_000)
    for beep in beeps:
        at = round(beep * 48_000)
        samples[at : at + 480] = wave[:, None]
    for at in range(0, len(samples), piece):
        yield samples[at : at + piece]


def heard(path):
    """The sound of a file as it is played, one channel, and the time of its first sample."""
    with av.open(str(path)) as film:
        frames = list(film.decode(audio=0))
        sound = np.concatenate([frame.to_ndarray()[0] for frame in frames])
        return sound, frames[0].pts * Fraction(frames[0].time_base)


@pytest.mark.parametrize("fps", [Fraction(30), NTSC, Fraction(1), Fraction(120)])
def test_every_frame_is_there_at_its_time(tmp_path, fps):
    view = PageView(320, 180, fps)
    # slices of one frame, of two, and of more than a group of pictures
    borders = [0, 1, 3, 70, 200]
    whole = join(slices(tmp_path, view, borders), view, tmp_path / "whole.mp4")
    assert (whole.frames, whole.sound) == (200, False)
    frames = list(decoded(whole.path))
    assert [read_rows(picture)[0] for _, picture in frames] == [
        shown(i, borders) for i in range(200)
    ]
    assert all(abs(time - i / fps) < Fraction(1, 10_000) for i, (time, _) in enumerate(frames))


@pytest.mark.parametrize("fragmented", [False, True])
def test_the_index_of_the_file_is_right(tmp_path, fragmented):
    view = PageView(320, 180, NTSC)
    out = tmp_path / "whole.mp4"
    film = Film(fragmented=fragmented)
    join(slices(tmp_path, view, [0, 60, 130, 300]), view, out, tone(300 / NTSC), film=film)
    index = fragdex.index(out, exact=True)
    video, audio = index.tracks
    assert (video.kind, audio.kind) == ("video", "audio")
    assert (video.sample_count, index.complete, index.findings) == (300, True, ())
    assert video.start == 0
    assert float(video.stop) == pytest.approx(float(300 / NTSC), abs=1e-4)
    assert float(audio.stop) == pytest.approx(float(300 / NTSC), abs=1e-3)
    with av.open(str(out)) as film:
        packets = [packet for packet in film.demux(video=0) if packet.size]
    # what the index says of each frame is what another reader finds
    samples = video.samples
    assert [int(size) for size in samples.size] == [packet.size for packet in packets]
    assert [int(offset) for offset in samples.offset] == [packet.pos for packet in packets]
    assert [bool(sync) for sync in samples.sync] == [packet.is_keyframe for packet in packets]
    # a player knows duration and places from the first bytes
    how = "from sidx" if fragmented else "from the sample tables"
    assert how in repr(fragdex.index(out))


def test_the_same_frames_give_the_same_bytes(tmp_path):
    view = PageView(320, 180, Fraction(30))
    digests = set()
    for turn in range(2):
        folder = tmp_path / str(turn)
        folder.mkdir()
        parts = slices(folder, view, [0, 20, 90])
        join(parts, view, folder / "whole.mp4", tone(3, beeps=[1]))
        digests.add(hashlib.sha256((folder / "whole.mp4").read_bytes()).hexdigest())
    assert len(digests) == 1


COLOURS = [
    (255, 255, 255), (0, 0, 0), (255, 0, 0), (0, 255, 0), (0, 0, 255), (18, 52, 86), (200, 190, 60),
]  # fmt: skip


@pytest.mark.parametrize("colour", COLOURS)
def test_colours_are_those_of_bt_709(tmp_path, colour):
    red, green, blue = (part / 255 for part in colour)
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    expected = (16 + 219 * y, 128 + 224 * (blue - y) / 1.8556, 128 + 224 * (red - y) / 1.5748)
    picture = Pictures(PageView(64, 64)).picture(plain_png(colour))
    assert np.allclose([plane(picture, n).mean() for n in range(3)], expected, atol=1)
    # and the file says that they are
    view = PageView(64, 64, Fraction(30))
    part = encoded(tmp_path / "a.mp4", view, [plain_png(colour)])
    join([part], view, tmp_path / "whole.mp4")
    with av.open(str(tmp_path / "whole.mp4")) as film:
        context = film.streams.video[0].codec_context
        frame = next(film.decode(video=0))
    names = (context.color_primaries, context.color_trc, context.colorspace, context.color_range)
    assert [int(name) for name in names] == [1, 1, 1, 1]
    assert np.allclose([plane(frame, n).mean() for n in range(3)], expected, atol=2)


def test_sound_is_where_it_was_put(tmp_path):
    """To the sample, nearly: what the encoder puts before the sound is hidden by an edit list."""
    view = PageView(320, 180, NTSC)
    beeps = [0.5, 1.25, 2.0, 5.9]
    out = tmp_path / "whole.mp4"
    whole = join(slices(tmp_path, view, [0, 100, 180]), view, out, tone(180 / NTSC, beeps=beeps))
    assert whole.sound
    sound, start = heard(out)
    assert start == 0
    for beep in beeps:
        at = round(beep * 48_000)
        window = np.abs(sound[at - 2000 : at + 2000])
        onset = int(np.argmax(window > 0.2)) - 2000
        assert abs(onset) < 48  # a millisecond
    assert abs(len(sound) - 48_000 * 180 / NTSC) < 2048


def test_slices_of_different_sizes_are_not_joined(tmp_path):
    one = encoded(tmp_path / "1.mp4", PageView(64, 64), [plain_png((0, 0, 0))])
    two = encoded(tmp_path / "2.mp4", PageView(64, 32), [plain_png((0, 0, 0), (64, 32))])
    with pytest.raises(BrowserGone, match="cannot be joined"):
        join([one, two], PageView(64, 64), tmp_path / "whole.mp4")


@pytest.mark.parametrize(
    "wrong",
    [None, b"", b"no PNG", plain_png((0, 0, 0), (32, 32)), plain_png((0, 0, 0))[:60]],
    ids=["none", "empty", "text", "size", "cut"],
)
def test_what_is_no_picture_is_told(tmp_path, wrong):
    with pytest.raises(BrowserGone, match=r"the browser gave|first frame"):
        encoded(tmp_path / "a.mp4", PageView(64, 64), [wrong])


def test_frames_that_do_not_change_are_nearly_free(tmp_path):
    view = PageView(320, 180, Fraction(30))
    encoded(tmp_path / "still.mp4", view, [png(7)] + [None] * 299)
    assert (tmp_path / "still.mp4").stat().st_size < 20_000
