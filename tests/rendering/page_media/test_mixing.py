"""Strips become sound: to the sample, at any speed, within full scale, in little memory."""

from __future__ import annotations

import io
import tracemalloc
from fractions import Fraction
from itertools import pairwise

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragdex.rendering.page_media.mixing import WINDOW, Limiter, mix
from fragdex.rendering.page_media.opening import Opener
from fragdex.rendering.page_media.strips import SoundStrip, joined
from fragdex.rendering.site import Page
from rendering.page_media.films import RATE, beeps, onsets, wav


def encoded(samples, form, codec, rate=RATE, **options):
    """A file of sound in some codec."""
    file = io.BytesIO()
    container = av.open(file, "w", format=form, options=options)
    stream = container.add_stream(codec, rate=rate)
    stream.layout = "mono"
    frame = av.AudioFrame.from_ndarray(samples[None].astype(np.float32), "fltp", "mono")
    frame.sample_rate, frame.pts = rate, 0
    context = stream.codec_context
    size = context.frame_size or 1024
    resampler = av.AudioResampler(context.format, "mono", rate, frame_size=size)
    for ready in (*resampler.resample(frame), *resampler.resample(None)):
        container.mux(stream.encode(ready))
    container.mux(stream.encode(None))
    container.close()
    return file.getvalue()


def wave_of(data):
    return np.frombuffer(data[44:], "<i2") / 32767


BEEPS = wave_of(beeps(3))
FILES = {
    "wav": lambda: beeps(3),
    "mp3": lambda: encoded(BEEPS, "mp3", "libmp3lame"),
    "aac": lambda: encoded(BEEPS, "mp4", "aac"),
    "fragmented": lambda: encoded(BEEPS, "mp4", "aac", movflags="frag_keyframe+delay_moov"),
    "opus": lambda: encoded(BEEPS, "ogg", "libopus"),
    "webm": lambda: encoded(BEEPS, "webm", "libopus"),
    "flac": lambda: encoded(BEEPS, "flac", "flac"),
}


def opener(**files):
    new_opener = Opener(Page(""))
    new_opener.given.update(files)
    return new_opener


def sound_of(strips, files, seconds):
    return np.concatenate(list(mix(strips, files, seconds)))


@pytest.mark.parametrize("kind", FILES)
def test_every_format_is_placed_to_the_sample(kind):
    files = opener(a=FILES[kind]())
    sound = sound_of([SoundStrip("a", 0.25, 4.25, media_start=0.1)], files, 5)
    assert sound.shape == (5 * RATE, 2)
    assert onsets(sound) == [0.65, 1.65, 2.65]


def test_other_sampling_rates_keep_their_place():
    samples = np.interp(np.arange(3 * 44100) / 44100, np.arange(len(BEEPS)) / RATE, BEEPS)
    sound = sound_of([SoundStrip("a", 0, 3)], opener(a=wav(samples, 44100)), 3)
    assert onsets(sound) == pytest.approx([0.5, 1.5, 2.5], abs=0.0005)


@given(
    st.lists(
        st.tuples(st.floats(0, 2), st.floats(0.01, 1.5), st.floats(0, 1), st.booleans()),
        max_size=4,
    ),
    st.lists(st.floats(0.05, 2.9), max_size=4),
)
@settings(max_examples=30, deadline=None)
def test_cut_anywhere_and_joined_it_is_the_same(parts, cuts):
    """Slices give strips within their bounds; `joined` makes whole ones of them again."""
    strips = [
        SoundStrip("a", start, min(start + length, 3), media, loop=loop, voice=str(n))
        for n, (start, length, media, loop) in enumerate(parts)
    ]
    edges = [0, *sorted(set(cuts)), 3]
    slices = [
        [s.within(a, b) for s in strips if s.start < b and s.stop > a] for a, b in pairwise(edges)
    ]
    again = joined(slices)
    assert len(again) == len(strips)
    files = opener(a=beeps(1))
    assert np.array_equal(sound_of(again, files, 3), sound_of(strips, files, 3))


def test_an_hour_stands_in_little_memory():
    """Looped through an hour, of which the last minutes are looked at."""
    files = opener(a=beeps(1))
    strips = [SoundStrip("a", 0, 3600, loop=True, gains=((0, 0.0), (3590, 1.0)))]
    tracemalloc.start()
    blocks = mix(strips, files, 3600)
    count, last = 0, []
    for block in blocks:
        count += len(block)
        last = [*last[-8:], block]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 3600 * RATE
    assert onsets(np.concatenate(last)[-8 * RATE :]) == [n + 0.5 for n in range(8)]
    assert most < 40e6


def test_what_cannot_be_decoded_is_silent_and_told():
    lines = []
    strips = [SoundStrip("bad", 0, 1), SoundStrip("good", 0, 1), SoundStrip("ftp://x", 0, 1)]
    files = opener(bad=b"no sound", good=beeps(1))
    sound = np.concatenate(list(mix(strips, files, 1, lines.append)))
    assert onsets(sound) == [0.5]
    assert [line.partition(":")[0] for line in sorted(lines)] == ["bad", "ftp"]


def test_duration_is_rounded_to_samples():
    assert sum(map(len, mix([], opener(), Fraction(1001, 30000)))) == 1602


@given(st.lists(st.floats(0, 4), min_size=1, max_size=12), st.integers(1, 900))
def test_nothing_passes_full_scale_and_quiet_is_left_alone(levels, piece):
    sound = np.repeat(np.float32(levels), 200)[:, None] * np.float32([1, -1])
    limiter = Limiter()
    parts = [
        part for at in range(0, len(sound), piece) for part in limiter.take(sound[at : at + piece])
    ]
    limited = np.concatenate([*parts, *limiter.rest()])
    assert limited.shape == sound.shape
    assert np.abs(limited).max(initial=0) <= 1
    assert (np.abs(limited) <= np.abs(sound) + 1e-6).all()
    loud = np.flatnonzero(np.abs(sound).max(axis=1) > 1)
    near = np.zeros(len(sound), bool)
    for at in loud:
        near[max(0, at - 2 * WINDOW) : at + 2 * WINDOW] = True
    assert np.array_equal(limited[~near], sound[~near])
