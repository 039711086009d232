"""References to a film: each chunk decodes to its frames, and other bytes are refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.bridges.film_codec import FilmChunks
from fragdex.bridges.references import references
from fragdex.errors import BuildError, DamagedIndex, SourceChanged

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILMS = ["open-gop.mp4", "frag-hvc1.mp4", "frag-start-7s.mp4", "mjpeg.mp4"]


def settings_of(made):
    return json.loads(made["refs"]["frames/zarr.json"])["codecs"][0]["configuration"]


def chunks_of(made, film):
    for key, place in made["refs"].items():
        if key.startswith("frames/c/"):
            _, offset, length = place
            yield film[offset : offset + length]


@pytest.mark.parametrize("name", FILMS)
@pytest.mark.parametrize("count", [None, 7])
def test_every_chunk_decodes_to_its_frames(name, count):
    film = (FIXTURES / name).read_bytes()
    made = references(film, "s3://films/" + name, frames=count, format="gray", digests=True)
    assert "/tmp" not in json.dumps(made)
    chunks = FilmChunks(settings_of(made))
    found = np.concatenate([chunks.decoded(data) for data in chunks_of(made, film)])
    expected = fragdex.Frames(film, format="gray")
    assert (found == np.asarray(expected)).all()
    lengths = settings_of(made)["lengths"]
    assert len(set(lengths)) == len(lengths)


@given(st.data())
def test_other_bytes_are_refused_or_decode(data):
    film = (FIXTURES / "open-gop.mp4").read_bytes()
    made = references(film, "film.mp4", digests=True)
    chunks = FilmChunks(settings_of(made))
    chunk = bytearray(data.draw(st.sampled_from(list(chunks_of(made, film)))))
    place = data.draw(st.integers(0, len(chunk) - 1))
    chunk[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(SourceChanged):
        chunks.decoded(bytes(chunk))
    with pytest.raises(SourceChanged):
        chunks.decoded(bytes(chunk[:place]))


@given(
    st.sampled_from(
        ["index", "init", "track", "frames", "format", "offsets", "lengths", "digests"]
    ),
    st.one_of(st.text(max_size=8), st.integers(-3, 3), st.lists(st.integers(-9, 9), max_size=3)),
)
def test_damaged_settings_are_refused(name, value):
    film = (FIXTURES / "open-gop.mp4").read_bytes()
    made = references(film, "film.mp4")
    settings = settings_of(made)
    if settings[name] == value or (name, value) in (("format", "gray"), ("digests", [])):
        return
    try:
        chunks = FilmChunks({**settings, name: value})
    except (fragdex.FragdexError, ValueError):
        return
    with pytest.raises((fragdex.FragdexError, ValueError, IndexError)):
        print([chunks.decoded(data).shape for data in chunks_of(made, film)])


def test_what_has_no_frames_is_told():
    with pytest.raises(BuildError, match="no decoder can start"):
        references((FIXTURES / "intra-refresh.mp4").read_bytes(), "film.mp4")
    with pytest.raises(DamagedIndex):
        FilmChunks({})
