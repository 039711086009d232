"""How channels are mixed: as FFmpeg mixes them, and with a centre first where people speak."""

import av
import numpy as np
import pytest

from fragdex.decoding.sound_stream import mixed

LAYOUTS = (
    *("stereo", "2.1", "3.0", "3.0(back)", "4.0", "quad", "quad(side)", "3.1", "5.0", "5.0(side)"),
    *("4.1", "5.1", "5.1(side)", "6.0", "6.0(front)", "hexagonal", "6.1", "6.1(back)"),
    *("6.1(front)", "7.0", "7.0(front)"),
)


def frame_of(sound, layout):
    """float64 of shape (channels, samples) as a frame of 32-bit samples."""
    samples = np.ascontiguousarray(np.rint(sound * (2**31 - 1)).astype(np.int32))
    frame = av.AudioFrame.from_ndarray(samples, "s32p", layout)
    frame.sample_rate = 48_000
    return frame


@pytest.mark.parametrize("layout", LAYOUTS)
def test_two_channels_are_those_of_ffmpeg(layout):
    rng = np.random.default_rng(1)
    sound = rng.uniform(-1, 1, (len(av.AudioLayout(layout).channels), 1000))
    resampler = av.AudioResampler("s32p", "stereo", 48_000)
    theirs = resampler.resample(frame_of(sound, layout))[0].to_ndarray().T / 2**31
    assert np.abs(mixed(frame_of(sound, layout), 2) - theirs).max() < 1e-6


CENTRED = [
    name for name in LAYOUTS if "FC" in [channel.name for channel in av.AudioLayout(name).channels]
]


@pytest.mark.parametrize("layout", CENTRED)
def test_a_centre_is_far_above_the_others(layout):
    channels = [channel.name for channel in av.AudioLayout(layout).channels]
    rng = np.random.default_rng(2)
    sound = rng.normal(0, 0.1, (len(channels), 48_000)).clip(-1, 1)
    place = channels.index("FC")
    others = sound * (np.arange(len(channels)) != place)[:, None]
    spoken, around = (
        mixed(frame_of(part, layout), 1, centre=True) for part in (sound - others, others)
    )
    assert np.corrcoef(spoken[:, 0], sound[place])[0, 1] > 0.9999
    assert np.std(spoken) > 5 * np.std(around)
