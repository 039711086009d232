"""Every frame is that of a decode of the whole track in order, however it is asked for."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragdex
from fragdex.frames.references import References
from frames.films import FILMS, made
from frames.linear import linear, same

FIXTURES = Path(__file__).parents[2] / "fixtures"
ODD = {
    "two-inits.mp4": "two periods: asked for by the track",
    "encrypted.mp4": "encrypted",
    "frag-encrypted.mp4": "encrypted",
    "cut-faststart.mp4": "cut off before the samples",
    "cut-in-moof.mp4": "FFmpeg does not open it",
    "frag-every-frame.mp4": "two pictures for one time, of which FFmpeg drops one",
    "frag-global-sidx-stale-base.mp4": "FFmpeg follows its sidx, which is wrong on purpose",
}
PICTURES = sorted(
    path.name
    for path in FIXTURES.iterdir()
    if path.suffix in (".mp4", ".mov", ".3gp", ".f4v") and path.name not in ODD
)


def opened(what, **options):
    """Frames with all that is in the file, as planes."""
    try:
        return fragdex.Frames(what, format="yuv", hidden=True, **options)
    except fragdex.FragdexError as error:
        pytest.skip(f"no pictures: {error}")


@pytest.mark.parametrize("name", PICTURES)
def test_frames_of_fixtures_are_those_of_a_linear_decode(name):
    with opened(FIXTURES / name) as frames:
        expected = linear(FIXTURES / name, frames.track.id)
        numbers = np.random.default_rng(1).permutation(len(frames))
        batch = frames[numbers]
        assert len(frames) == len(expected)
        for frame in batch:
            assert same(frame.data, expected[frame.number]), frame.number


@pytest.mark.parametrize("name", FILMS)
def test_each_frame_alone_is_that_of_a_linear_decode(name):
    data, expected = made(name)
    with opened(data, cache=0) as frames:
        assert len(frames) == len(expected) == 60
        for number in np.random.default_rng(2).permutation(60).tolist():
            assert same(frames[number].data, expected[number]), number


@pytest.mark.parametrize(
    "name",
    ["x264 b-pyramid", "x265 open gop", "x265 layers, 10 bit", "av1 film grain", "vp9 layers"],
)
def test_pictures_that_no_other_refers_to_are_left_out(name):
    data, _ = made(name)
    with opened(data, cache=0, order="decode") as frames:
        last = int(frames.key_frames[1]) - 1
        frames[last]
        assert frames.decoded < 0.9 * frames.plan(last).decoded


SEI_OF_GRAIN = "00000005 06 13 01 80 80"


@pytest.mark.parametrize(
    ("format", "after", "may"),
    [
        ("avc1", "00000002 0188", True),
        ("avc1", "00000002 4188", False),
        ("avc1", "00000002 0188 00000002 4188", False),
        ("avc1", "00000002 0188 00000002 6742", False),  # a parameter set
        ("avc1", SEI_OF_GRAIN + "00000002 0188", False),  # H.274: may hold for what follows
        ("avc1", "00000003 0188", False),
        ("hvc1", "00000003 020180", False),  # TRAIL_R
        ("hvc1", "00000003 000180", True),  # TRAIL_N
        ("hvc1", "00000003 000180 00000003 440180", False),
        ("hvc1", "00000006 4e0113018080 00000003 000180", False),
        ("vp09", "86", False),
        ("vp08", "30", False),
    ],
)
def test_what_may_be_left_out(format, after, may):
    assert References([None, bytes.fromhex(after)], format, 4).may_be_skipped(1) is may


def test_a_layer_is_needed_by_the_next_one():
    samples = [bytes.fromhex(f"00000003 {head}80") for head in ("2601", "0001", "0002", "0202")]
    skipped = References(samples, "hvc1", 4)
    assert [skipped.may_be_skipped(place) for place in range(4)] == [False, False, True, False]


@given(
    st.lists(st.binary(max_size=40), min_size=1, max_size=3), st.sampled_from([None, 0, 1, 2, 4]),
    st.sampled_from(["avc1", "hvc1", "av01", "vp09"]), st.sampled_from([b"", b"\x0a\x0b", b"\x32"]),
)  # fmt: skip
def test_any_bytes_may_be_left_out_or_not(samples, size, format, before):
    references = References([before + sample for sample in samples], format, size)
    for place in range(len(samples)):
        assert references.may_be_skipped(place) in (True, False)


@settings(max_examples=settings.default.max_examples // 4)
@given(st.data())
@pytest.mark.parametrize("name", FILMS)
def test_any_numbers_and_times_in_any_order(name, data):
    film, expected = made(name)
    threads = data.draw(st.integers(1, 3))
    with opened(
        film, threads=threads, cache=data.draw(st.sampled_from([0, 50_000, 1 << 24]))
    ) as frames:
        for _ in range(3):
            asked = data.draw(st.lists(st.integers(-60, 59), max_size=12))
            batch = frames[asked]
            assert batch.numbers.tolist() == [n % 60 for n in asked]
            moments = [
                Fraction(n, 100) for n in data.draw(st.lists(st.integers(-50, 300), max_size=8))
            ]
            shown = frames.at(moments)
            right = [
                max(np.searchsorted(frames.times, float(at), "right") - 1, 0) for at in moments
            ]
            assert shown.numbers.tolist() == right
            for frame in (*batch, *shown):
                assert same(frame.data, expected[frame.number]), frame.number
