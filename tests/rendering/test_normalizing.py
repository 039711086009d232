"""Loudness is measured as EBU Tech 3341 asks of meters; one gain brings a sound to it."""

import av
import numpy as np
import pytest

from fragdex.decoding.sound_levels import measured
from fragdex.rendering.join import CEILING, normalized
from fragdex.rendering.outputs import Film
from fragdex.rendering.render import render
from fragdex.rendering.spec import RenderSpec
from rendering.frames.test_ranges import NTSC, noisy

pytestmark = pytest.mark.large

RATE = 48_000


def tone(*parts, hertz=1000, phase=0.0):
    """A stereo sine of levels (dBFS) for some time (s), in pieces of odd lengths."""
    gains = [np.full(round(seconds * RATE), 10 ** (level / 20)) for level, seconds in parts]
    gain = np.concatenate(gains)
    wave = gain * np.sin(2 * np.pi * hertz * np.arange(len(gain)) / RATE + np.deg2rad(phase))
    sound = np.stack([wave, wave], axis=1).astype(np.float32)
    # without the peaks of a cut that nothing had before
    slope = np.linspace(0, 1, 1000, dtype=np.float32)[:, None]
    sound[:1000] *= slope
    sound[-1000:] *= slope[::-1]
    return np.array_split(sound, max(1, len(sound) // 47_111))


@pytest.mark.parametrize(
    ("parts", "lufs"),
    [
        ([(-23, 20)], -23),
        ([(-33, 20)], -33),
        ([(-36, 10), (-23, 60), (-36, 10)], -23),
        ([(-72, 10), (-36, 10), (-23, 60), (-36, 10), (-72, 10)], -23),
        ([(-26, 20), (-20, 20.1), (-26, 20)], -23),
    ],
)
def test_the_signals_1_to_5_of_tech_3341_measure_as_they_should(parts, lufs):
    assert abs(measured(tone(*parts)).integrated - lufs) <= 0.1


@pytest.mark.parametrize(
    ("level", "hertz", "phase", "peak"),
    [
        (-6.02, RATE / 4, 0, -6),
        (-6.02, RATE / 4, 45, -6),
        (-6.02, RATE / 6, 60, -6),
        (-6.02, RATE / 8, 67.5, -6),
        (2.98, RATE / 4, 45, 3),
    ],
)
def test_the_signals_15_to_19_have_the_true_peaks_that_they_should(level, hertz, phase, peak):
    true_peak = measured(tone((level, 1), hertz=hertz, phase=phase)).true_peak
    assert peak - 0.4 <= true_peak <= peak + 0.2


def test_a_peak_at_the_very_end_is_seen():
    sound = np.zeros((3 * RATE + 70, 2), np.float32)
    sound[-40:] = 0.8
    assert 20 * np.log10(0.8) - 0.01 <= measured([sound]).true_peak < 0


@pytest.mark.parametrize("sound", [[], [np.zeros((RATE, 2), np.float32)], tone((-20, 0.3))])
def test_what_has_no_loudness_stays_as_it_is(sound):
    levels, changed = normalized(lambda: sound, -23)
    assert (levels.integrated, levels.gain) == (None, 0)
    assert all((one == other).all() for one, other in zip(sound, changed, strict=True))


@pytest.mark.parametrize(("target", "reached"), [(-23, -23), (-14, -14), (-5, CEILING)])
def test_one_gain_brings_it_there_or_as_near_as_its_true_peak_allows(target, reached):
    # of a stereo sine, LUFS are what its peak is in dBFS
    levels, changed = normalized(lambda: tone((-30, 5), (-40, 1)), target)
    after = measured(changed)
    wanted = target if reached == target else after.integrated
    assert abs(after.integrated - wanted) <= 0.1
    assert after.true_peak <= CEILING + 0.05
    assert levels.gain == pytest.approx(after.integrated - levels.integrated, abs=0.02)


@pytest.mark.usefixtures("chromium")
@pytest.mark.parametrize("film", [Film("wav", loudness=-23), Film("mkv", audio="pcm", loudness=-5)])
def test_a_render_is_as_loud_as_it_was_asked_to_be(tmp_path, film):
    out = tmp_path / f"a.{film.container}"
    rendered = render(noisy(NTSC), RenderSpec(64, 64, NTSC, 2000, film=film), out)
    with av.open(str(out)) as container:
        frames = [frame.to_ndarray().reshape(-1, 2) for frame in container.decode(audio=0)]
    after = measured([np.concatenate(frames).astype(np.float32) / 32768])
    loudness = rendered.loudness
    assert abs(after.integrated - (loudness["integrated"] + loudness["gain"])) <= 0.1
    if film.loudness == -23:
        assert abs(after.integrated + 23) <= 0.1
    else:
        assert abs(after.true_peak - CEILING) <= 0.1
