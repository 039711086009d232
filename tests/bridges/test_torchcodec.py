"""Windows through torchcodec: the frames that it gives are those of the film."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import fragdex

pytest.importorskip("torchcodec", reason="it is tried beside torchcodec by ./dev bridges")
FIXTURES = Path(__file__).parents[2] / "fixtures"
FILMS = [
    "faststart.mp4", "open-gop.mp4", "all-sync-open-gop.mp4", "intra-refresh.mp4", "hevc-aac.mp4",
    "frag-hvc1.mp4", "av1-opus.mp4", "frag-negative-cts.mp4", "frag-vp9-opus.mp4", "mpeg2-ac3.mp4",
    "frag-start-7s.mp4",
]  # fmt: skip


@pytest.mark.parametrize("name", FILMS)
def test_windows_are_frames_of_the_film(name):
    from torchcodec.decoders import VideoDecoder

    path, chance = FIXTURES / name, random.Random(3)
    index = fragdex.index(path, exact=True)
    with fragdex.Frames(path, index) as frames:
        count = len(frames)
        spans = [(count - 1, count), (count - 9, count)]
        spans += [(first, first + 8) for first in chance.sample(range(count - 8), 6)]
        for first, stop in spans:
            window = index.window("video", first, stop, verified=True)
            for keep_times in (False, True):
                decoder = VideoDecoder(window.mp4(keep_times=keep_times), dimension_order="NHWC")
                batch = decoder.get_frames_at(window.wanted.tolist())
                expected = frames[first:stop].data
                # libswscale rounds differently where it converts on its own
                assert np.abs(batch.data.numpy().astype(int) - expected).max() <= 1
                if keep_times:
                    assert np.allclose(batch.pts_seconds.numpy(), window.times, atol=1e-6)
