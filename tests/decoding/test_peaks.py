"""Waveforms against numpy on another decoder's samples; the bytes of .dat read back; loudness."""

import io
import json
import struct
import sys
from pathlib import Path

import av
import numpy as np
import pytest

import fragdex
from fragdex.decoding import sound_stream
from fragdex.errors import LimitExceeded, TrackNotFound, UndecodableMedia

FIXTURES = Path(__file__).parents[2] / "fixtures"
RATE = 48_000


def sound(seconds=3, channels=2, rate=RATE, seed=1):
    """int16 of shape (samples, channels): tones that swell."""
    time = np.arange(int(seconds * rate)) / rate
    pitch = 220 * np.arange(1, channels + 1)[:, None]
    wave = np.sin(2 * np.pi * pitch * time) * np.sin(np.pi * time / seconds) * 0.8
    noise = np.random.default_rng(seed).normal(0, 0.02, wave.shape)
    return np.clip((wave + noise) * 32768, -32768, 32767).astype(np.int16).T


def film(samples, codec="pcm_s16le", container="mov", rate=RATE, layout="stereo"):
    file = io.BytesIO()
    with av.open(file, "w", format=container) as out:
        stream = out.add_stream(codec, rate=rate)
        stream.layout = layout
        form = "s16" if codec.startswith(("pcm", "flac")) else "fltp"
        for at in range(0, len(samples), 4096):
            part = np.ascontiguousarray(samples[at : at + 4096])
            if form == "fltp":
                data = np.ascontiguousarray((part.astype(np.float32) / 32768).T)
            else:
                data = part.reshape(1, -1)
            frame = av.AudioFrame.from_ndarray(data, format=form, layout=layout)
            frame.sample_rate, frame.pts = rate, at
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return file.getvalue()


def expected(samples, per_pixel, bits, split):
    """audiowaveform's arithmetic on int16, in plain loops over pixels."""
    wide = samples.astype(np.int64)
    if not split:
        total = wide.sum(axis=1, keepdims=True)
        wide = np.sign(total) * (np.abs(total) // samples.shape[1])
    rows = []
    for at in range(0, len(wide), per_pixel):
        part = wide[at : at + per_pixel]
        rows.append(np.stack([part.min(axis=0), part.max(axis=0)], axis=1))
    values = np.array(rows)
    return values if bits == 16 else np.sign(values) * (np.abs(values) // 256)


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("per_pixel", [2, 256, 1000, 70_001, 10**9])
def test_of_pcm_the_values_are_audiowaveforms(per_pixel, bits, split):
    samples = sound()
    data = film(samples)
    waveform = fragdex.decoding.peaks(
        fragdex.index(data), data, samples_per_pixel=per_pixel, bits=bits, split=split
    )
    assert np.array_equal(waveform.values, expected(samples, per_pixel, bits, split))
    assert (waveform.rate, waveform.bits, waveform.gaps) == (RATE, bits, ())


@pytest.mark.parametrize("channels", [1, 2, 6])
def test_each_channel_by_itself(channels):
    layout = {1: "mono", 2: "stereo", 6: "5.1"}[channels]
    samples = sound(1, channels)
    data = film(samples, layout=layout)
    index = fragdex.index(data)
    split = fragdex.decoding.peaks(index, data, bits=16, split=True)
    assert np.array_equal(split.values, expected(samples, 256, 16, True))
    mixed = fragdex.decoding.peaks(index, data, bits=16)
    assert np.abs(mixed.values - expected(samples, 256, 16, False)).max() <= 1


@pytest.mark.parametrize("name", ["frag-audio.m4a", "alac.m4a", "frag-av1-opus.mp4"])
def test_of_other_codecs_they_are_those_of_another_decoder(name):
    path = FIXTURES / name
    index = fragdex.index(path)
    track = next(t for t in index.tracks if t.kind == "audio")
    peaks = fragdex.decoding.peaks(index, path, samples_per_pixel=512, bits=16, split=True)
    whole = fragdex.decoding.audio(
        index,
        path,
        0,
        track.stop,
        rate=peaks.rate,
        channels=peaks.values.shape[1],
        dtype=np.float32,
    ).reshape(-1, peaks.values.shape[1])
    as_ints = np.clip(np.rint(whole * 32768), -32768, 32767).astype(np.int16)
    reference = expected(as_ints, 512, 16, True)
    count = min(len(peaks.values), len(reference))
    assert abs(len(peaks.values) - len(reference)) <= 1
    # a decoder warmed up in two seconds differs from one that ran on by some 1e-4 of full scale
    assert np.abs(peaks.values[: count - 1] - reference[: count - 1]).max() <= 32


def test_aac_beside_the_frames_of_pyav():
    data = film(sound(5), "aac", "mp4")
    waveform = fragdex.decoding.peaks(
        fragdex.index(data), data, samples_per_pixel=256, bits=16, split=True
    )
    with av.open(io.BytesIO(data)) as container:
        frames = list(container.decode(audio=0))
    assert frames[0].pts <= 0
    whole = np.concatenate([f.to_ndarray() for f in frames], axis=1)[:, -frames[0].pts :]
    reference = expected(
        np.clip(np.rint(whole.T * 32768), -32768, 32767).astype(np.int16), 256, 16, True
    )
    assert len(waveform.values) == -(-5 * RATE // 256)
    assert np.array_equal(waveform.values[:-1], reference[: len(waveform.values) - 1])


def test_several_zooms_of_one_pass_equal_those_asked_for_alone():
    data = film(sound(2))
    index = fragdex.index(data)
    zooms = [4096, 256, 1024, 300, 600, 256]
    together = fragdex.decoding.peaks(index, data, samples_per_pixel=zooms)
    assert [one.samples_per_pixel for one in together] == zooms
    for one in together:
        alone = fragdex.decoding.peaks(index, data, samples_per_pixel=one.samples_per_pixel)
        assert np.array_equal(one.values, alone.values)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("split", [True, False])
def test_both_forms_say_the_same(bits, split):
    data = film(sound(1))
    waveform = fragdex.decoding.peaks(fragdex.index(data), data, bits=bits, split=split)
    binary = waveform.dat()
    version, flags, rate, per_pixel, length, channels = struct.unpack_from("<iIiiIi", binary)
    assert (version, flags, rate, per_pixel) == (2, bits == 8, RATE, 256)
    values = np.frombuffer(binary[24:], f"<i{bits // 8}").reshape(length, channels, 2)
    assert np.array_equal(values, waveform.values)
    text = json.loads(waveform.json())
    assert list(text) == [
        "version", "channels", "sample_rate", "samples_per_pixel", "bits", "length", "data"
    ]  # fmt: skip
    assert (text["length"], text["channels"]) == (length, channels)
    assert text["data"] == values.ravel().tolist()


def test_what_begins_late_begins_with_silence():
    path = FIXTURES / "audio-late.mp4"
    index = fragdex.index(path)
    track = next(t for t in index.tracks if t.kind == "audio")
    assert track.start.seconds > 0.2
    waveform = fragdex.decoding.peaks(index, path, samples_per_pixel=100)
    silent = int(track.start.seconds * waveform.rate / 100) - 1
    assert silent > 5
    assert not waveform.values[:silent].any()
    assert waveform.values[silent:].any()


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"samples_per_pixel": 1}, ValueError),
        ({"samples_per_pixel": -256}, ValueError),
        ({"samples_per_pixel": 1 << 40}, ValueError),
        ({"samples_per_pixel": []}, ValueError),
        ({"samples_per_pixel": list(range(2, 100))}, ValueError),
        ({"samples_per_pixel": [2.5]}, TypeError),
        ({"bits": 12}, ValueError),
        ({"track": 9}, TrackNotFound),
    ],
)
def test_what_is_refused(asked, error):
    data = film(sound(0.1))
    with pytest.raises(error):
        fragdex.decoding.peaks(fragdex.index(data), data, **asked)


@pytest.mark.parametrize("measure", [fragdex.decoding.peaks, fragdex.decoding.loudness])
def test_files_without_sound_or_with_sound_that_cannot_be_decoded_say_so(measure):
    path = FIXTURES / "encrypted.mp4"
    with pytest.raises(UndecodableMedia, match="encrypted"):
        measure(fragdex.index(path), path)
    path = FIXTURES / "one-gop.mp4"
    index = fragdex.index(path)
    if not any(track.kind == "audio" for track in index.tracks):
        with pytest.raises(TrackNotFound):
            measure(index, path)
    data = bytearray(film(sound(1), "aac", "mp4"))
    index = fragdex.index(bytes(data), exact=True)
    table = index.tracks[0].samples
    for at, size in zip(table.offset.tolist(), table.size.tolist(), strict=True):
        data[at : at + size] = b"\xff" * size
    with pytest.raises(UndecodableMedia, match="damaged"):
        measure(index, bytes(data))


def test_a_file_that_ends_too_early_is_silent_from_there_on_and_says_so():
    data = film(sound(4), "aac", "mp4")
    index = fragdex.index(data)
    init = b"".join(data[part.start : part.stop] for part in index.periods[0].init)
    table = index.tracks[0].samples
    cut = data[: int(table.offset[len(table) // 2])]
    waveform = fragdex.decoding.peaks(index, cut, init=init)
    assert waveform.gaps[0].reason == "missing from the file"
    assert abs(waveform.gaps[0].start - 2) < 0.1
    assert len(waveform.values) == -(-4 * RATE // 256)
    half = len(waveform.values) // 2
    assert waveform.values[10 : half - 10].any()
    assert not waveform.values[half + 10 :].any()


def test_a_track_that_claims_to_last_for_years_is_refused(monkeypatch):
    data = film(sound(3), "aac", "mp4")
    monkeypatch.setattr(sound_stream, "LONGEST_SECONDS", 2)
    for measure in (fragdex.decoding.peaks, fragdex.decoding.loudness):
        with pytest.raises(LimitExceeded):
            measure(fragdex.index(data), data)


def test_too_many_pixels_are_refused(monkeypatch):
    data = film(sound(3))
    monkeypatch.setattr(sys.modules["fragdex.decoding.sound_levels"], "MOST_VALUES", 1000)
    with pytest.raises(LimitExceeded, match="samples_per_pixel"):
        fragdex.decoding.peaks(fragdex.index(data), data, samples_per_pixel=16)


@pytest.mark.parametrize(("rate", "layout"), [(RATE, "stereo"), (44_100, "stereo"), (RATE, "mono")])
def test_loudness_of_a_sine(rate, layout):
    # EBU Tech 3341, signal 1: a stereo sine of 1 kHz at -23 dBFS is -23 LUFS; one channel 3 less
    channels = 1 if layout == "mono" else 2
    wave = 10 ** (-23 / 20) * np.sin(2 * np.pi * 1000 * np.arange(10 * rate) / rate)
    samples = np.repeat(np.rint(wave * 32768).astype(np.int16)[:, None], channels, axis=1)
    data = film(samples, rate=rate, layout=layout)
    loudness = fragdex.decoding.loudness(fragdex.index(data), data)
    assert abs(loudness.integrated - (-23 if channels == 2 else -26)) <= 0.15
    assert loudness.range <= 0.2
    assert abs(loudness.true_peak + 23) <= 0.3


def test_loudness_range():
    # EBU Tech 3342, signal 1: 20 s at -20 dBFS, 20 s at -30 dBFS have a range of 10 LU
    gain = np.repeat([10 ** (-20 / 20), 10 ** (-30 / 20)], 20 * RATE)
    wave = gain * np.sin(2 * np.pi * 1000 * np.arange(40 * RATE) / RATE)
    data = film(np.repeat(np.rint(wave * 32768).astype(np.int16)[:, None], 2, axis=1))
    assert abs(fragdex.decoding.loudness(fragdex.index(data), data).range - 10) <= 1


def test_silence_has_no_loudness():
    data = film(np.zeros((RATE, 2), np.int16))
    loudness = fragdex.decoding.loudness(fragdex.index(data), data)
    assert (loudness.integrated, loudness.range, loudness.true_peak) == (None, None, None)
