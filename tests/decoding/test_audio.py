"""The sound of a span is the same samples, however it is asked for, and those that FFmpeg plays."""

from __future__ import annotations

import contextlib
import io
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragdex
from fragdex.boxes import build, parse
from fragdex.decoding import AudioReader
from fragdex.errors import InexactIndex, TrackNotFound, UndecodableMedia
from fragdex.testing import RangeServer, movie

av = pytest.importorskip("av")

FIXTURES = Path(__file__).parents[2] / "fixtures"
SECONDS = 7
FRAGMENTS = {"movflags": "delay_moov+default_base_moof", "frag_duration": "700000"}


def sound(rate: int, channels: int) -> Any:
    """Voices of many pitches over noise: nothing that a codec could leave out."""
    t = np.arange(rate * SECONDS) / rate
    rng = np.random.default_rng(5)
    columns = []
    for channel in range(channels):
        pitch = 200 + 70 * np.sin(2 * np.pi * (0.7 + channel) * t)
        wave = sum(np.sin(2 * np.pi * np.cumsum(pitch * k) / rate) / k for k in (1, 2, 5))
        level = 0.5 + 0.5 * np.sin(2 * np.pi * 1.3 * t)
        columns.append(4000 * level * wave + rng.normal(0, 300, len(t)))
    return np.stack(columns).astype(np.int16)


def encoded(
    codec: str, rate: int, channels: int, form: str, fragments: bool, **options: str
) -> bytes:
    """A file with `sound` in it, progressive or in fragments of 0.7 s."""
    out = io.BytesIO()
    layout = "mono" if channels == 1 else "stereo"
    with av.open(out, "w", format=form, options=FRAGMENTS if fragments else {}) as container:
        stream = container.add_stream(codec, rate=rate, layout=layout, options=options)
        stream.codec_context.open()
        resampler = av.AudioResampler(stream.codec_context.format.name, layout, rate)
        data = sound(rate, channels)
        if layout == "stereo":
            data = data.T.reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(data), "s16", layout)
        frame.sample_rate = rate
        fifo = av.AudioFifo()
        for part in (*resampler.resample(frame), *resampler.resample(None)):
            part.pts = None
            fifo.write(part)
        at = 0
        while fifo.samples:
            part = fifo.read(min(stream.codec_context.frame_size or 1024, fifo.samples))
            part.pts, part.time_base, part.sample_rate = at, Fraction(1, rate), rate
            at += part.samples
            container.mux(stream.encode(part))
        container.mux(stream.encode(None))
    return out.getvalue()


# name: how it is made, and how far from FFmpeg's straight decode a sample may be. Opus forgets what
# came before bit by bit; all others are the same to the bit once they are warm.
KINDS: dict[str, tuple[tuple[Any, ...], dict[str, str], float]] = {
    "flac": (("flac", 44100, 1, "mp4", False), {}, 0),
    "flac-fragments": (("flac", 48000, 2, "mp4", True), {}, 0),
    "aac": (("aac", 44100, 2, "mp4", False), {"aac_pns": "0"}, 0),
    "aac-fragments": (("aac", 48000, 1, "mp4", True), {"aac_pns": "0"}, 0),
    "aac-noise": (("aac", 44100, 1, "mp4", True), {"b": "32k"}, 2),
    "he-aac": (("aac", 24000, 1, "mp4", True), {"aac_pns": "0"}, 0),
    "opus": (("libopus", 48000, 1, "mp4", False), {}, 1e-3),
    "opus-fragments": (("libopus", 48000, 2, "mp4", True), {"frame_duration": "60"}, 1e-3),
    "mp3": (("libmp3lame", 44100, 1, "mp4", False), {"b": "64k"}, 0),
    "ac3": (("ac3", 48000, 2, "mp4", True), {}, 0.05),
    "eac3": (("eac3", 48000, 1, "mp4", False), {}, 0.05),
    "alac": (("alac", 44100, 2, "mp4", True), {}, 0),
    "pcm": (("pcm_s16le", 44100, 2, "mov", False), {}, 0),
    "pcm-fragments": (("pcm_s24be", 22050, 1, "mov", True), {}, 0),
    "mu-law": (("pcm_mulaw", 8000, 1, "mov", False), {}, 0),
}
_made: dict[str, tuple[bytes, fragdex.Index]] = {}
_wholes: dict[tuple[str, int, int], Any] = {}


def made(kind: str) -> tuple[bytes, fragdex.Index]:
    if kind not in _made:
        how, options, _ = KINDS[kind]
        data = encoded(*how, **options)
        if kind == "he-aac":
            data = with_a_high_band(data)
        _made[kind] = data, fragdex.index(data, exact=True)
    return _made[kind]


def with_a_high_band(data: bytes) -> bytes:
    """The same AAC at 24 kHz, said to be HE-AAC at 48 kHz (ISO/IEC 14496-3, 1.6.2.1).

    No encoder that is free to be had makes one. No frame says how its high band is made, so that it
    is empty; but everything goes the way of HE-AAC: filter banks, twice the rate, longer frames.
    """
    plain = bytes.fromhex("130856e500")  # AAC-LC, 24 kHz, mono; no high band
    assert data.count(plain) == 1
    bits = f"{5:05b}{6:04b}{1:04b}{3:04b}{2:05b}000"
    return data.replace(plain, int(bits.ljust(40, "0"), 2).to_bytes(5, "big"))


def played(data: bytes, rate: int) -> Any:
    """What FFmpeg's own demuxer and one decoder give from time 0 on, as one channel."""
    with av.open(io.BytesIO(data)) as container:
        stream = container.streams.audio[0]
        stream.codec_context.thread_count = 1
        strip = np.zeros(rate * (SECONDS + 2))
        for frame in container.decode(stream):
            array = frame.to_ndarray()
            count = len(frame.layout.channels)
            array = array if frame.format.is_planar else array.reshape(-1, count).T
            scale = {"int16": 2.0**15, "int32": 2.0**31}.get(array.dtype.name, 1)
            column = (array.astype(np.float32) / np.float32(scale)).mean(axis=0)
            at = round(frame.pts * frame.time_base * rate)
            strip[max(at, 0) : at + len(column)] = column[max(0, -at) :]
        return strip


@pytest.mark.parametrize("kind", KINDS)
def test_the_whole_is_what_ffmpeg_plays(kind):
    (_, rate, *_), _, far = KINDS[kind]
    data, index = made(kind)
    rate = 48000 if kind == "he-aac" else rate
    ours = fragdex.decoding.audio(index, data, 0, SECONDS, rate=rate, dtype=np.float32)
    theirs = played(data, rate)[: rate * SECONDS]
    assert ours.dtype == np.float32
    assert np.abs(ours - theirs).max() <= max(far, 1e-6)
    assert np.abs(ours).max() > 0.05


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12)
@given(data=st.data())
def test_any_span_is_cut_from_the_whole(kind, data):
    movie_bytes, index = made(kind)
    rate = data.draw(st.sampled_from([16000, 44100, 48000]))
    channels = data.draw(st.sampled_from([1, 2]))
    start = data.draw(st.fractions(-1, SECONDS + 1, max_denominator=1000))
    stop = data.draw(st.fractions(start, min(start + 3, SECONDS + 1), max_denominator=1000))
    options = {"rate": rate, "channels": channels}
    key = (kind, rate, channels)
    if key not in _wholes:
        with AudioReader(index, movie_bytes, **options) as reader:
            _wholes[key] = reader.read(-1, SECONDS + 1)
    whole = _wholes[key]
    first, last = round((start + 1) * rate), round((stop + 1) * rate)
    with AudioReader(index, movie_bytes, **options) as reader:
        assert np.array_equal(reader.read(start, stop), whole[first:last])


def test_the_order_of_spans_does_not_matter():
    data, index = made("aac-noise")
    with AudioReader(index, data) as reader:
        whole = reader.read(0, SECONDS)
    with AudioReader(index, data) as reader:
        for second in (5, 1, 3, 0, 6, 2, 4, 1):
            part = reader.read(second, second + 1)
            assert np.array_equal(part, whole[second * 16000 : (second + 1) * 16000])


@pytest.mark.parametrize("kind", ["flac", "aac-fragments", "pcm", "opus-fragments"])
def test_a_saved_index_without_samples_does_as_well(kind, tmp_path):
    data, index = made(kind)
    index.save(tmp_path / "saved.fidx")
    saved = fragdex.open_index(tmp_path / "saved.fidx")
    with pytest.raises(InexactIndex):
        saved.tracks[0].samples_of(0, 1)
    span = (Fraction(9, 4), 4)
    assert np.array_equal(
        fragdex.decoding.audio(saved, data, *span), fragdex.decoding.audio(index, data, *span)
    )


def test_only_what_is_needed_is_read_over_http():
    data, _ = made("aac-fragments")
    with RangeServer(data) as server, fragdex.open_source(server.url) as source:
        index = fragdex.index(source, exact=True)
        spent, asked = source.bytes_read, source.requests
        sound = fragdex.decoding.audio(index, source, 3, 4)
        spent, asked = source.bytes_read - spent, source.requests - asked
    assert sound.any()
    assert np.array_equal(sound, fragdex.decoding.audio(index, data, 3, 4))
    assert spent < len(data) * 0.8
    assert asked < 12


def test_an_index_by_mfra_gives_the_same_sound():
    data, _ = made("aac-fragments")
    with RangeServer(data) as server, fragdex.open_source(server.url) as source:
        index = fragdex.index(source)
        assert index.how.method == "mfra"
        sound = fragdex.decoding.audio(index, source, 3, 4)
    assert sound.any()
    assert np.array_equal(
        sound, fragdex.decoding.audio(fragdex.index(data, exact=True), data, 3, 4)
    )


@pytest.mark.parametrize("name", ["start-7s.mp4", "frag-delay-moov-start-7s.mp4"])
def test_a_late_start_is_silence_before_it(name):
    path = FIXTURES / name
    index = fragdex.index(path, exact=True)
    track = next(t for t in index.tracks if t.kind == "audio")
    begin = track.start.seconds
    assert begin > 6.9
    sound = fragdex.decoding.audio(index, path, 0, 9)
    assert not sound[: int(begin * 16000) - 100].any()
    assert sound[int(begin * 16000) + 1600 :].any()


def test_what_the_edit_list_hides_is_not_heard():
    path = FIXTURES / "aac.m4a"
    index = fragdex.index(path, exact=True)
    assert index.tracks[0].shift == -1024
    sound = fragdex.decoding.audio(index, path, -1, 3)
    assert not sound[:16000].any()
    assert sound[16000:16100].any()
    assert not sound[48000:].any()  # the list ends at 2 s, the last frame lasts longer


def test_three_tracks_are_told_apart():
    path = FIXTURES / "three-audio.mp4"
    index = fragdex.index(path, exact=True)
    ids = [track.id for track in index.tracks if track.kind == "audio"]
    assert len(ids) == 3
    for track in ids:
        assert fragdex.decoding.audio(index, path, 0, 0.2, track=track).shape == (3200,)
    stereo = fragdex.decoding.audio(index, path, 0, 0.2, track=ids[0], channels=2, rate=48000)
    assert stereo.shape == (9600, 2)


def test_surround_is_mixed_without_clipping():
    path = FIXTURES / "surround.mp4"
    index = fragdex.index(path, exact=True)
    sound = fragdex.decoding.audio(index, path, 0, 0.5, dtype=np.float32, channels=2)
    assert 0 < np.abs(sound).max() <= 1


def with_ticks(data: bytes, timescale: int) -> bytes:
    """The same progressive file with other, coarser ticks, and without its edit list."""

    def changed(box: Any) -> Any:
        if box.type == "mdhd":
            return box.replace(timescale=timescale, duration=timescale * SECONDS)
        if box.type == "stts":
            counts = box["entries"]["sample_count"]
            durations = np.repeat(box["entries"]["sample_delta"], counts).astype(np.int64)
            ends = np.cumsum(durations) * timescale // 44100
            entries = np.zeros(len(ends), box["entries"].dtype)
            entries["sample_count"] = 1
            entries["sample_delta"] = np.diff(ends, prepend=0)
            return box.replace(entries=entries)
        if box.children:
            return box.replace(children=[changed(c) for c in box.children if c.type != "edts"])
        return box

    return b"".join(build(changed(box)) for box in parse(data))


def test_ticks_coarser_than_samples_leave_no_holes():
    data, index = made("aac")
    coarse = with_ticks(data, 1000)
    again = fragdex.index(coarse, exact=True)
    assert again.tracks[0].timescale == 1000
    options = {"rate": 44100, "dtype": np.float32}
    sound = fragdex.decoding.audio(again, coarse, 0, SECONDS, **options)
    whole = fragdex.decoding.audio(index, data, -1024 / 44100, SECONDS - 1024 / 44100, **options)
    whole[:1024] = sound[:1024]  # hidden by the edit list
    # A tick is 44 samples: blocks begin at the nearest one, and what lies between is held.
    for second in range(SECONDS - 1):
        part = whole[second * 44100 + 2000 : second * 44100 + 12000]
        near = [
            np.abs(sound[second * 44100 + 2000 + late :][:10000] - part).max()
            for late in range(-60, 61)
        ]
        assert min(near) < 1e-6
    assert (sound[2000:] == 0).mean() < 0.001


# ---- what cannot be decoded -----------------------------------------------------------------


def test_no_sound_and_no_such_track():
    data = movie()
    index = fragdex.index(data)
    with pytest.raises(TrackNotFound, match="no audio track"):
        fragdex.decoding.audio(index, data, 0, 1)
    with pytest.raises(TrackNotFound, match="not an audio track"):
        fragdex.decoding.audio(index, data, 0, 1, track=index.tracks[0].id)
    with pytest.raises(TrackNotFound, match="no track 77"):
        fragdex.decoding.audio(index, data, 0, 1, track=77)


@pytest.mark.parametrize("name", ["encrypted.mp4", "frag-encrypted.mp4", "piff-encrypted.ismv"])
def test_encrypted_sound_is_refused_with_its_time(name):
    path = FIXTURES / name
    index = fragdex.index(path, exact=True)
    track = next(t for t in index.tracks if t.kind == "audio")
    with pytest.raises(UndecodableMedia, match="encrypted") as raised:
        fragdex.decoding.audio(index, path, 0.5, 1)
    assert raised.value.start is not None
    assert (raised.value.start, raised.value.stop) == (0.5, 1)
    with AudioReader(index, path) as reader:
        assert not reader.read(0, 1).any()
        (gap,) = reader.gaps(0, 1)
        assert "encrypted" in gap.reason
        assert gap.stop - gap.start > 0.9
        assert reader.track.id == track.id


def test_a_codec_that_nobody_knows_is_told():
    data, _ = made("flac")
    strange = data.replace(b"fLaC", b"zzzz", 1)
    with pytest.raises(UndecodableMedia, match="no decoder for track 1"):
        fragdex.decoding.audio(fragdex.index(strange, exact=True), strange, 0, 1)


def test_a_damaged_fragment_is_a_gap_and_the_rest_is_heard():
    data, index = made("aac-fragments")
    table = index.tracks[0].fragments
    broken = bytearray(data)
    row = len(table) // 2
    start, stop = int(table.data_start[row]) + 8, int(table.data_stop[row])
    broken[start:stop] = b"\xff" * (stop - start)
    with AudioReader(index, bytes(broken)) as reader, AudioReader(index, data) as sane:
        heard, whole = reader.read(0, SECONDS), sane.read(0, SECONDS)
        (gap,) = reader.gaps(0, SECONDS)
    scale = index.tracks[0].timescale
    begin, end = int(table.dts[row]) / scale, int(table.dts[row] + table.duration[row]) / scale
    assert begin - 0.1 < gap.start < gap.stop < end + 0.1
    assert gap.reason == "damaged"
    for low, high in ((0, begin - 0.1), (end + 0.1, SECONDS)):
        span = slice(round(low * 16000), round(high * 16000))
        assert np.array_equal(heard[span], whole[span])


def test_a_file_cut_short_ends_in_a_gap():
    data, index = made("flac-fragments")
    with AudioReader(index, data[: len(data) // 2]) as reader:
        heard = reader.read(0, SECONDS)
        (gap,) = reader.gaps(0, SECONDS)
    assert gap.reason == "missing from the file"
    assert 2.5 < gap.start < 5
    assert heard[:32000].any()
    with pytest.raises(UndecodableMedia, match="missing"):
        fragdex.decoding.audio(index, data[: len(data) // 2], 6, 6.5)


@settings(max_examples=60)
@given(st.data())
def test_hostile_bytes_end_in_gaps_never_in_another_error(data):
    movie_bytes, index = made(data.draw(st.sampled_from(["aac", "opus", "mp3", "flac", "ac3"])))
    broken = bytearray(movie_bytes)
    for _ in range(data.draw(st.integers(1, 30))):
        place = data.draw(st.integers(0, len(broken) - 1))
        broken[place] = data.draw(st.integers(0, 255))
    # Nothing could be decoded, or the moov was hit, which tells the decoder's setting.
    with contextlib.suppress(fragdex.FragdexError):
        fragdex.decoding.audio(index, bytes(broken), 0, 3)


@pytest.mark.parametrize(
    "wrong", [{"rate": 0}, {"channels": 3}, {"dtype": np.int8}, {"start": 2, "stop": 1}]
)
def test_wrong_values_are_refused(wrong):
    data, index = made("flac")
    asked = {"start": 0, "stop": 1, **wrong}
    with pytest.raises(ValueError, match=r"channels|int16|ends"):
        fragdex.decoding.audio(index, data, asked.pop("start"), asked.pop("stop"), **asked)


@pytest.mark.parametrize("name", ["frag-global-sidx.mp4", "frag-audio-sidx.m4a"])
def test_an_index_by_sidx_gives_the_same_sound(name):
    data = (FIXTURES / name).read_bytes()
    by_sidx = fragdex.index(data)
    assert by_sidx.how.method == "sidx"
    expected = fragdex.decoding.audio(fragdex.index(data, exact=True), data, 0.2, 0.8)
    assert expected.any()
    assert np.array_equal(fragdex.decoding.audio(by_sidx, data, 0.2, 0.8), expected)
