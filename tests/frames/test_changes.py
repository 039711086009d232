"""Cuts of the picture are found, and nothing else is taken for one."""

from __future__ import annotations

import io

import numpy as np
import pytest

av = pytest.importorskip("av")

import fragdex  # noqa: E402
from fragdex.frames.changes import changes, cuts_near, small_frames  # noqa: E402

CUT, FLASH, DISSOLVE = 30, 50, range(70, 76)


def shade_of(number):
    if number == FLASH:
        return 235
    return 40 + (80 if number >= CUT else 0) + 18 * sum(number >= one for one in DISSOLVE)


@pytest.fixture(scope="module")
def video():
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as out:
        stream = out.add_stream("mpeg4", rate=10, width=64, height=48, pix_fmt="yuv420p")
        for number in range(100):
            planes = np.full((72, 64), shade_of(number), np.uint8)
            out.mux(stream.encode(av.VideoFrame.from_ndarray(planes, "yuv420p")))
        out.mux(stream.encode(None))
    return file.getvalue()


@pytest.fixture(scope="module")
def frames(video):
    with small_frames(video, None) as opened:
        yield opened


def test_a_cut_is_found_and_no_flash_or_dissolve(frames):
    assert cuts_near(frames, [*range(0, 10_000, 100)], 300) == [CUT * 100]


@pytest.mark.parametrize("by", [-301, -300, 0, 300, 301])
def test_only_cuts_near_the_times_are_given(by, frames):
    assert cuts_near(frames, [CUT * 100 + by], 300) == [CUT * 100] * (abs(by) <= 300)


def test_nothing_is_near_no_times(frames):
    assert cuts_near(frames, [], 300) == []


def test_damaged_pictures_are_not_taken_for_changes(video):
    index = fragdex.index(video, exact=True)
    samples = index.video.samples
    place, size = int(samples.offset[60]), int(samples.size[60])
    damaged = bytearray(video)
    damaged[place : place + size] = bytes(size)
    with small_frames(bytes(damaged), None) as opened:
        numbers = range(CUT + 10, 70)
        assert opened[[*numbers]].missing
        found, _ = changes(opened, [(number - 1, number) for number in numbers])
        assert {number for number, _ in found} <= {FLASH, FLASH + 1}
