"""Streams that say nothing of reordering, or a lie: frames are those that they would be if it did.

What pictures are is what decoding the untouched film in order gives: no pixel depends on the VUI.
"""

from __future__ import annotations

import io
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.decoding.pictures import PictureReader
from fragdex.rendering.page_media.medium import FilePictures
from fragdex.seeking.numbering import reorder_depth
from frames.films import FILMS, X264, film
from frames.linear import linear, planes, same
from frames.rewritten_sets import (
    avc_with_lie,
    avc_without_restriction,
    avc_without_vui,
    hevc_without_vui,
    rewritten,
    sequence_sets,
)
from frames.test_frames import ODD

FIXTURES = Path(__file__).parents[2] / "fixtures"
WAYS = {"no vui": avc_without_vui, "no word": avc_without_restriction, "a lie": avc_with_lie}
REORDERED = {
    name: FILMS[name]
    for name in ("x264 b-pyramid", "x264 open gop", "x264 interlaced", "x265 open gop")
} | {"single b": ("libx264", {"x264-params": "keyint=15:min-keyint=15:scenecut=0:bframes=1"})}
WITH_SETS = [
    path.name
    for path in sorted(FIXTURES.iterdir())
    if path.suffix in (".mp4", ".mov", ".f4v")
    and path.name not in ODD
    and not path.name.startswith("cut-")
    and not path.name.endswith("-init.mp4")
    and sequence_sets(path.read_bytes())
]


def each_alone(data, expected, order):
    """Every frame of a fresh decoder, in this order; none of it is kept for the next."""
    with fragdex.Frames(data, format="yuv", hidden=True, cache=0) as frames:
        assert len(frames) == len(expected)
        for number in order:
            assert same(frames[number].data, expected[number]), number


@pytest.mark.parametrize("name", WITH_SETS)
def test_fixtures_without_a_vui(name):
    data = (FIXTURES / name).read_bytes()
    changed = rewritten(data, avc_without_vui, hevc_without_vui)
    with fragdex.Frames(changed, format="yuv", hidden=True) as frames:
        expected = linear(data, frames.track.id)
        for number in np.random.default_rng(1).permutation(len(frames))[:6].tolist():
            with fragdex.Frames(changed, frames.index, format="yuv", hidden=True) as fresh:
                assert same(fresh[number].data, expected[number]), number
        for frame in frames[np.random.default_rng(2).permutation(len(frames))]:
            assert same(frame.data, expected[frame.number]), frame.number


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", REORDERED)
def test_each_frame_alone(name, way):
    codec, options = REORDERED[name]
    data = film(codec, 30, **options)
    changed = rewritten(data, WAYS[way], hevc_without_vui)
    assert changed != data
    expected = linear(data)
    each_alone(changed, expected, range(30))
    each_alone(changed, expected, np.random.default_rng(3).permutation(30).tolist())
    with fragdex.Frames(changed, format="yuv", hidden=True, threads=3) as frames:
        for frame in frames[::-1]:
            assert same(frame.data, expected[frame.number]), frame.number


@pytest.mark.parametrize(
    ("samples", "where"),
    [(True, "frag_keyframe"), (False, "frag_keyframe"), (False, "frag_every_frame")],
)
@pytest.mark.parametrize("name", ["single b", "x264 b-pyramid", "x264 open gop"])
def test_pictures_of_times_in_any_order(name, samples, where):
    codec, options = REORDERED[name]
    data = film(codec, 30, **options, fragmented=where)
    changed = rewritten(data, avc_without_vui, hevc_without_vui)
    expected = linear(data)
    index = fragdex.index(changed, exact=samples)
    times = fragdex.Frames(changed).times
    orders = (range(30), range(29, -1, -1), np.random.default_rng(4).permutation(30).tolist())
    for order in orders:
        with PictureReader(index, changed) as pictures:
            for number in order:
                shown = planes(pictures.at(float(times[number]) + 0.001).frame)
                assert same(shown, expected[number]), number


def test_pictures_of_other_files_whose_first_b_comes_late():
    """What FFmpeg looks at before it plays has none."""
    data = film("libx264", late=44, **{"x264-params": X264 + "bframes=3:b-adapt=0"})
    file = io.BytesIO()
    changed = io.BytesIO(rewritten(data, avc_without_vui, hevc_without_vui))
    with av.open(changed) as source, av.open(file, "w", format="matroska") as out:
        stream = out.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.size:
                packet.stream = stream
                out.mux(packet)
    expected = linear(data)
    for order in (range(60), (50, 45, 44, 46, 3)):
        pictures = FilePictures(file)
        for number in order:
            shown = planes(pictures.at(Fraction(number, 25) + Fraction(1, 200)).frame)
            assert same(shown, expected[number]), number
        pictures.close()


@given(st.lists(st.integers(0, 40), max_size=30))
def test_the_depth_is_what_a_buffer_needs_to_give_samples_in_order(cts):
    order = sorted(range(len(cts)), key=lambda sample: (cts[sample], sample))

    def is_enough(depth):
        held, given_out = [], []
        for sample in range(len(cts)):
            held.append(sample)
            if len(held) > depth:
                first = min(held, key=order.index)
                held.remove(first)
                given_out.append(first)
        return [*given_out, *sorted(held, key=order.index)] == order

    least = next(depth for depth in range(len(cts) + 1) if is_enough(depth))
    assert reorder_depth(np.array(cts, np.int64)) == min(least, 16)
