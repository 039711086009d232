"""The handler decides how a sample entry is laid out (8.5.2, 12.1.3), not a list of names."""

import pickle
from pathlib import Path

import pytest

import fragdex
from fragdex.boxes import build, parse, parse_box

FILM = (Path(__file__).parents[2] / "fixtures/faststart.mp4").read_bytes()
# DNxHR, DV, CineForm, Hap, FFV1, ProRes RAW, Cinepak, Sorenson, Animation, raw RGB, …; and none.
VIDEO = (
    *("AVdn", "AVdh", "dvc ", "dvcp", "dv5n", "dvh5", "CFHD", "Hap1", "Hap5", "HapY", "FFV1"),
    *("aprn", "cvid", "SVQ1", "SVQ3", "rle ", "raw ", "b64a", "v308", "xd5b", "ai12", "WMV3"),
    *("VC-1", "vc-1", "ZyGo", "\xa9\0\1\2"),
)
AUDIO = ("QDM2", "MAC3", "alaw", "spex", "sevc", "WMA2", "ZyGo", "avc1")


def with_entry(entry, code):
    at = FILM.index(entry, FILM.index(b"stsd"))
    return FILM[:at] + code.encode("latin-1") + FILM[at + 4 :]


def round_trips(film):
    boxes = parse(film)
    assert build(boxes) == film
    return pickle.loads(pickle.dumps(boxes)) == boxes  # noqa: S301


@pytest.mark.parametrize("code", VIDEO)
def test_pictures_of_any_codec_have_a_size(code):
    film = with_entry(b"avc1", code)
    info = fragdex.index(film).video.info
    assert (info.format, info.width, info.height) == (code, 64, 48)
    assert round_trips(film)


@pytest.mark.parametrize("code", AUDIO)
def test_sound_of_any_codec_has_a_rate(code):
    film = with_entry(b"mp4a", code)
    info = fragdex.index(film).audio.info
    assert (info.format, info.sample_rate, info.channel_count) == (code, 16000, 1)
    assert round_trips(film)


def test_what_follows_the_fields_of_an_unknown_codec_need_not_be_boxes():
    """QuickTime puts a table of colours into entries of eight bits."""
    at = FILM.index(b"avcC") - 4
    film = with_entry(b"avc1", "rle ")
    film = film[:at] + b"\xff" * 8 + film[at + 8 :]
    assert fragdex.index(film).video.info.width == 64
    assert round_trips(film)


def test_an_entry_alone_is_read_by_its_code():
    at = FILM.index(b"avc1", FILM.index(b"stsd")) - 4
    entry = bytearray(FILM[at:])
    assert parse_box(entry, "stsd")["width"] == 64
    entry[4:8] = b"AVdn"
    assert parse_box(entry, "stsd").opaque
