"""References to a film: each chunk decodes to its frames, and other bytes are refused."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragdex
from fragdex.bridges.film_codec import FilmChunks, SoundChunks
from fragdex.bridges.references import references, sound_references
from fragdex.errors import BuildError, DamagedIndex, SourceChanged, TrackNotFound
from fragdex.media import audio

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILMS = ["open-gop.mp4", "frag-hvc1.mp4", "frag-start-7s.mp4", "mjpeg.mp4"]


def settings_of(reference_set):
    return json.loads(reference_set["refs"]["frames/zarr.json"])["codecs"][0]["configuration"]


def chunks_of(reference_set, film):
    for key, place in reference_set["refs"].items():
        if key.startswith("frames/c/"):
            _, offset, length = place
            yield film[offset : offset + length]


@pytest.mark.parametrize("name", FILMS)
@pytest.mark.parametrize("count", [None, 7])
def test_every_chunk_decodes_to_its_frames(name, count):
    film = (FIXTURES / name).read_bytes()
    reference_set = references(
        film, "s3://films/" + name, frames=count, format="gray", digests=True
    )
    assert "/tmp" not in json.dumps(reference_set)
    chunks = FilmChunks(settings_of(reference_set))
    frames = np.concatenate([chunks.decoded(data) for data in chunks_of(reference_set, film)])
    expected = fragdex.Frames(film, format="gray")
    assert (frames == np.asarray(expected)).all()
    lengths = settings_of(reference_set)["lengths"]
    assert len(set(lengths)) == len(lengths)


@settings(deadline=None)
@given(st.data())
def test_other_bytes_are_refused_or_decode(data):
    film = (FIXTURES / "open-gop.mp4").read_bytes()
    reference_set = references(film, "film.mp4", digests=True)
    chunks = FilmChunks(settings_of(reference_set))
    chunk = bytearray(data.draw(st.sampled_from(list(chunks_of(reference_set, film)))))
    place = data.draw(st.integers(0, len(chunk) - 1))
    chunk[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(SourceChanged):
        chunks.decoded(bytes(chunk))
    with pytest.raises(SourceChanged):
        chunks.decoded(bytes(chunk[:place]))


@settings(deadline=None)
@given(
    st.sampled_from(
        ["index", "init", "track", "frames", "format", "offsets", "lengths", "digests"]
    ),
    st.one_of(st.text(max_size=8), st.integers(-3, 3), st.lists(st.integers(-9, 9), max_size=3)),
)
def test_damaged_settings_are_refused(name, value):
    film = (FIXTURES / "open-gop.mp4").read_bytes()
    reference_set = references(film, "film.mp4")
    settings = settings_of(reference_set)
    if settings[name] == value or (name, value) in (("format", "gray"), ("digests", [])):
        return
    try:
        chunks = FilmChunks({**settings, name: value})
    except (fragdex.FragdexError, ValueError):
        return
    with pytest.raises((fragdex.FragdexError, ValueError, IndexError)):
        print([chunks.decoded(data).shape for data in chunks_of(reference_set, film)])


def test_what_has_no_frames_is_told():
    with pytest.raises(BuildError, match="no decoder can start"):
        references((FIXTURES / "intra-refresh.mp4").read_bytes(), "film.mp4")
    with pytest.raises(DamagedIndex):
        FilmChunks({})


SOUNDS = [  # AAC, AAC that begins late, Opus in fragments, FLAC, MP3, AC-3, float PCM, six channels
    ("faststart.mp4", 1), ("audio-late.mp4", 0.3), ("frag-av1-opus.mp4", 0.7),
    ("vp9-flac.mp4", 0.1), ("mpeg4-mp3.mp4", 5), ("mpeg2-ac3.mp4", 0.5), ("pcm-float.mp4", 0.05),
    ("surround.mp4", 0.2),
]  # fmt: skip


def sound_of(reference_set, film):
    """All sound by its chunks alone, as zarr puts it together."""
    array = json.loads(reference_set["refs"]["sound/zarr.json"])
    chunks = SoundChunks(array["codecs"][0]["configuration"])
    samples = np.zeros(array["shape"], array["data_type"])
    count = array["chunk_grid"]["configuration"]["chunk_shape"][0]
    for key, place in reference_set["refs"].items():
        if key.startswith("sound/c/"):
            _, offset, length = place
            first = int(key.split("/")[2]) * count
            sound = chunks.decoded(film[offset : offset + length])
            samples[first : first + count] = sound
    return samples, array["attributes"]["rate"]


@pytest.mark.parametrize(("name", "seconds"), SOUNDS)
@pytest.mark.parametrize("options", [{}, {"rate": 11025, "channels": 2, "dtype": "float32"}])
def test_every_chunk_decodes_to_its_sound(name, seconds, options):
    film = (FIXTURES / name).read_bytes()
    reference_set = sound_references(film, "s3://films/" + name, seconds=seconds, **options)
    samples, rate = sound_of(reference_set, film)
    expected = audio(
        film, 0, Fraction(len(samples), rate),
        rate=rate, channels=samples.shape[1], dtype=samples.dtype,
    )  # fmt: skip
    assert (samples == expected.reshape(samples.shape)).all()
    assert samples.any()
    stop = fragdex.index(film, exact=True).audio.stop
    assert abs(len(samples) - stop.seconds * rate) < 1


@settings(deadline=None)
@given(st.data())
def test_other_bytes_are_no_sound(data):
    film = bytearray((FIXTURES / "faststart.mp4").read_bytes())
    reference_set = sound_references(bytes(film), "film.mp4", seconds=0.5)
    samples = fragdex.index(bytes(film), exact=True).audio.samples
    number = data.draw(st.integers(0, len(samples) - 1))
    film[samples.offset[number] + data.draw(st.integers(0, samples.size[number] - 1))] ^= 255
    with pytest.raises(SourceChanged):
        sound_of(reference_set, bytes(film))
    with pytest.raises(SourceChanged):
        sound_of(reference_set, bytes(film[1:]))


def test_what_has_no_sound_is_told():
    for name, error in (("encrypted.mp4", BuildError), ("open-gop.mp4", TrackNotFound)):
        with pytest.raises(error):
            sound_references((FIXTURES / name).read_bytes(), "film.mp4")
    reference_set = sound_references(FIXTURES / "pcm.mp4", "film.mp4")
    settings = json.loads(reference_set["refs"]["sound/zarr.json"])["codecs"][0]["configuration"]
    for wrong in ({"digests": []}, {"rate": 0}, {"samples": 1 << 40}, {"lengths": [1, 2]}):
        with pytest.raises((fragdex.FragdexError, ValueError)):
            SoundChunks({**settings, **wrong})
