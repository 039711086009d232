"""Frames without change cost next to nothing, and nothing else is shown in their place."""

from fractions import Fraction
from functools import partial

import av
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fragdex.rendering import encode
from fragdex.rendering.browser.model import PageView
from fragdex.rendering.encode import Encoding, PictureNumbers, repeat_unit
from fragdex.rendering.join import join
from rendering.frames.numbers import decoded, plane, png, read_rows

VIEW = PageView(320, 180, Fraction(30))


def render(folder, runs):
    """A slice whose numbers stay for so many frames each; the file when it is joined."""
    with Encoding(folder / "slice.mp4", VIEW) as encoding:
        for number, frames in enumerate(runs):
            encoding.frame(png(number, 7 * number))
            for _ in range(frames - 1):
                encoding.frame(None)
        encoding.finish()
    join([partial((folder / "slice.mp4").open, "rb")], VIEW, folder / "whole.mp4")
    return folder / "whole.mp4"


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.integers(1, 50) | st.integers(1, 5), min_size=1, max_size=12))
def test_a_picture_stays_as_long_as_it_was_said(tmp_path, runs):
    path = render(tmp_path, runs)
    expected = [number for number, frames in enumerate(runs) for _ in range(frames)]
    assert [read_rows(picture)[:2] for _, picture in decoded(path)] == [
        [number, 7 * number] for number in expected
    ]


@pytest.mark.parametrize("threads", [1, 4])
def test_decoders_find_no_fault(tmp_path, threads):
    """Numbers go round at 16 and begin anew at key frames; strict decoders watch them."""
    path = render(tmp_path, [1, 100, 1, 1, 40, 2, 200])
    with av.open(str(path)) as film:
        context = film.streams.video[0].codec_context
        context.thread_count, context.thread_type = threads, "FRAME"
        context.options = {"err_detect": "explode+crccheck+bitstream+buffer"}
        frames = list(film.decode(video=0))
    assert len(frames) == 345
    assert not any(frame.is_corrupt for frame in frames)
    # a repeated picture is the same, to the bit
    held = [np.concatenate([plane(frame, n).ravel() for n in range(3)]) for frame in frames[30:59]]
    assert all((one == held[0]).all() for one in held)


def test_a_picture_that_stays_is_made_better_first(tmp_path):
    """Encoded three times before it is repeated: as good as if it were encoded each time."""
    with Encoding(tmp_path / "a.mp4", VIEW) as encoding:
        encoding.frame(png(1))
        for _ in range(50):
            encoding.frame(None)
        encoding.finish()
    *_, (_, last) = decoded(tmp_path / "a.mp4")
    assert read_rows(last)[0] == 1
    assert np.abs(last[25:35].astype(int) - 126).mean() < 2


@pytest.mark.parametrize(
    "size", [(1280, 720), (1920, 1080), (64, 64), (2, 2), (18, 34), (3840, 16)]
)
def test_every_size_has_its_repeat(size):
    unit = repeat_unit(*size, encode._alone)
    assert unit is not None
    # skipped macroblocks cost a fiftieth of a bit
    assert len(unit) < 20 + size[0] * size[1] / 256 / 80


def test_repeating_is_done_without_where_it_cannot_be(tmp_path, monkeypatch):
    monkeypatch.setattr(encode, "repeat_unit", lambda *_: None)
    path = render(tmp_path, [5, 70, 3])
    assert [read_rows(picture)[0] for _, picture in decoded(path)] == [0] * 5 + [1] * 70 + [2] * 3


def test_what_is_no_picture_of_ours_is_not_renumbered():
    numbered = PictureNumbers(b"\0\0\0\1\x65\x88\x84")
    with pytest.raises(ValueError, match="another kind of picture"):
        numbered.repeat()
    with pytest.raises(ValueError, match="another kind of slice"):
        PictureNumbers(b"\0\0\0\1\x41\xff\xff\xff").repeat()
    with pytest.raises(ValueError, match="nothing to repeat"):
        PictureNumbers().repeat()


def test_zeros_that_would_look_like_a_start_are_kept_apart():
    # frame_num 8 leaves two zero bytes before a third: an emulation prevention byte goes between
    unit = b"\0\0\0\1\x41" + bytes([0b10011010, 0b00100000, 0, 0, 3, 1, 0xFF])
    numbered = PictureNumbers(unit)
    frames = [numbered.repeat() for _ in range(16)]
    for frame in frames:
        body = frame[5:]
        assert b"\0\0\0" not in body
        assert b"\0\0\1" not in body
        plain = body.replace(b"\0\0\3", b"\0\0")
        assert plain[2:] == b"\0\0\1\xff"
    numbers = [(f[5:].replace(b"\0\0\3", b"\0\0")[0] & 1) << 3 | f[5:][1] >> 5 for f in frames]
    assert numbers == [*range(1, 16), 0]
