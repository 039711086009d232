"""Colours are the same numbers wherever they are made: swscale's, bit by bit."""

from __future__ import annotations

import contextlib
import io
import sys

import av
import numpy as np
import pytest
from av.video.reformatter import VideoReformatter
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from decoding.filming import numbered
from fragdex.decoding import pictures as pictures_module
from fragdex.errors import MissingExtra, UndecodableMedia
from fragdex.frames import frames
from fragdex.frames.arrays import (
    ArrayConverter,
    ArrayGathering,
    TorchArrays,
    coefficients,
    gray_of,
    library_of,
    rgb_of,
)
from fragdex.frames.pixels import Converter

MATRICES = {"ITU601": 6, "ITU709": 1, "BT2020": 9}
FORMATS = ("rgb", "gray", "rgb16", "gray16", "yuv")


class NumpyArrays:
    """What a library of arrays on a device does, by numpy: this machine has no device."""

    def whole(self, array):
        return array.astype(np.int32)

    def bytes(self, array):
        return array.clip(0, 255).astype(np.uint8)

    def words(self, array):
        return array.astype(np.uint16)

    def least(self, array, most):
        return np.minimum(array, most)

    def stacked(self, parts, axis):
        return np.stack(parts, axis)

    def repeated(self, array):
        return array.repeat(2, 0).repeat(2, 1)

    def taken(self, plane):
        return np.from_dlpack(plane)

    def sent(self, array):
        return array.copy()

    def copied(self, array):
        return array.copy()

    def turned(self, array, orientation):
        return orientation.of(array)

    def in_order(self):
        return contextlib.nullcontext()

    def hand_over(self):
        self.handed_over = True


def filled(name, planes, *, matrix=6, full=False):
    """A picture of FFmpeg's; interleaved chroma is given by (height, width, 2)."""
    high, wide = planes[0].shape[:2]
    frame = av.VideoFrame(wide, high, name)
    for plane, values in zip(frame.planes, planes, strict=True):
        lines = np.full((plane.buffer_size // plane.line_size, plane.line_size), 77, np.uint8)
        raw = np.ascontiguousarray(values).reshape(values.shape[0], -1).view(np.uint8)
        lines[: raw.shape[0], : raw.shape[1]] = raw
        plane.update(lines)
    frame.colorspace, frame.color_range = matrix, 2 if full else 1
    return frame


@st.composite
def pictures(draw, most=70):
    """Planes of 4:2:0 with even sides: luma, Cb, Cr."""
    high, wide = (2 * draw(st.integers(1, most // 2)) for _ in range(2))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    return [
        rng.integers(0, 256, shape, np.uint8)
        for shape in ((high, wide), (high // 2, wide // 2), (high // 2, wide // 2))
    ]


def both(planes, *, matrix=6, full=False):
    """A picture as the processor decodes it, and as a device does."""
    luma, cb, cr = planes
    stored = filled("nv12", [luma, np.stack([cb, cr], 2)], matrix=matrix, full=full)
    return filled("yuvj420p" if full else "yuv420p", planes, matrix=matrix, full=full), stored


@given(pictures(), st.sampled_from(sorted(MATRICES)), st.booleans())
def test_whole_numbers_make_the_colours_of_swscale(planes, matrix, full):
    luma, cb, cr = planes
    frame, _ = both(planes, matrix=MATRICES[matrix], full=full)
    lib = NumpyArrays()
    colours = rgb_of(lib, luma, np.stack([cb, cr], 2), coefficients(matrix, full_range=full))
    np.testing.assert_array_equal(colours, Converter("rgb").pixels(frame)[0])
    if matrix == "ITU601":
        gray = gray_of(lib, luma, full_range=full)
        np.testing.assert_array_equal(gray, Converter("gray").pixels(frame)[0])


def test_every_matrix_that_pictures_name_is_known():
    assert {swscale for swscale, _ in pictures_module._MATRICES.values()} == set(MATRICES)


def test_every_number_is_tried():
    """All luma and Cb by all Cr that differ in what is clipped."""
    luma = np.tile(np.arange(256, dtype=np.uint8), (512, 1))
    cb = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 128, 1)
    for matrix, number in MATRICES.items():
        for full in (False, True):
            for value in (0, 16, 90, 127, 128, 129, 200, 240, 255):
                cr = np.full_like(cb, value)
                frame, _ = both((luma, cb, cr), matrix=number, full=full)
                known = coefficients(matrix, full_range=full)
                colours = rgb_of(NumpyArrays(), luma, np.stack([cb, cr], 2), known)
                np.testing.assert_array_equal(colours, Converter("rgb").pixels(frame)[0])


@given(
    pictures(40), st.sampled_from(FORMATS), st.sampled_from([None, (16, 16), (32, 64)]),
    st.sampled_from([1, 6, 9, 2]), st.booleans(),
)  # fmt: skip
def test_what_a_device_decodes_looks_as_what_the_processor_decodes(
    planes, format, size, matrix, full
):
    own, stored = both(planes, matrix=matrix, full=full)
    wanted = Converter(format, size).pixels(own)
    fetched = Converter(format, size).pixels(stored)
    stays = ArrayConverter(NumpyArrays(), format, size).pixels(stored)
    for found in (fetched, stays):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


@given(pictures(40), st.sampled_from(["yuv", "rgb", "gray", "rgb16"]))
def test_ten_bits(planes, format):
    deep = [plane.astype("<u2") * 4 + 3 for plane in planes]
    luma, cb, cr = deep
    own = filled("yuv420p10le", deep)
    stored = filled("p010le", [luma << 6, np.stack([cb, cr], 2) << 6])
    wanted = Converter(format).pixels(own)
    for found in (
        Converter(format).pixels(stored),
        ArrayConverter(NumpyArrays(), format, None).pixels(stored),
    ):
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module")
def film():
    return numbered(60, 30, keys=20, size=(512, 64))


@pytest.fixture
def on_a_device(monkeypatch):
    """Pictures come as a device stores them, and stay as arrays of a library."""
    lib = NumpyArrays()
    monkeypatch.setattr(frames, "library_of", lambda output, device: lib)
    give = ArrayGathering.give

    def stored(self, sample, frame):
        give(self, sample, VideoReformatter().reformat(frame, format="nv12"))

    monkeypatch.setattr(ArrayGathering, "give", stored)
    return lib


@pytest.mark.parametrize("format", FORMATS)
def test_answers_are_those_of_the_processor(film, on_a_device, format):
    places = [40, 3, 3, 59, 21]
    there = fragdex.Frames(film, format=format, output="torch")[places]
    assert on_a_device.handed_over
    wanted = []
    with av.open(io.BytesIO(film)) as container:
        decoded = list(container.decode(video=0))
    for place in places:
        one = frames.Gathering([0], [], lambda: Converter(format))
        one.give(0, decoded[place])
        wanted.append(one.arrays([], (512, 64)))
    data = there.data if isinstance(there.data, tuple) else (there.data,)
    for number, planes in enumerate(wanted):
        for one, other in zip(data, planes, strict=True):
            np.testing.assert_array_equal(one[number], other[0])


def test_frames_that_are_damaged_are_blank(on_a_device):
    gathering = ArrayGathering(
        on_a_device, [0, 1], [], lambda: ArrayConverter(on_a_device, "rgb", None)
    )
    luma, chroma = np.full((64, 512), 90, np.uint8), np.full((32, 256), 99, np.uint8)
    gathering.give(0, filled("yuv420p", [luma, chroma, chroma]))
    (made,) = gathering.arrays([1], (512, 64))
    assert made[0].any()
    assert not made[1].any()
    nothing = ArrayGathering(
        on_a_device, [0, 1], [], lambda: ArrayConverter(on_a_device, "rgb", None)
    )
    assert nothing.arrays([0, 1], (512, 64))[0].shape == (2, 64, 512, 3)


def test_pictures_of_several_sizes_are_refused(on_a_device):
    gathering = ArrayGathering(
        on_a_device, [0, 1], [], lambda: ArrayConverter(on_a_device, "rgb", None)
    )
    gathering.give(0, av.VideoFrame(64, 48, "yuv420p"))
    with pytest.raises(UndecodableMedia, match="several sizes: 64 × 48 and 32 × 48"):
        gathering.give(1, av.VideoFrame(32, 48, "yuv420p"))


def test_what_is_no_output(film, monkeypatch):
    with pytest.raises(ValueError, match="output is one of numpy, torch, cupy, not 'jax'"):
        fragdex.Frames(film, output="jax")
    with pytest.raises(ValueError, match="stays on CUDA or in main memory, not on vaapi"):
        fragdex.Frames(film, output="torch", device="vaapi")
    with pytest.raises(ValueError, match='needs device="cuda"'):
        fragdex.Frames(film, output="cupy")
    for name in ("torch", "cupy"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(MissingExtra, match=f'output="{name}" needs'):
            library_of(name, "cuda")


class TestTorch:
    """The same with torch in main memory, where it is installed (`./dev bridges`)."""

    @given(pictures(), st.sampled_from(FORMATS), st.booleans())
    def test_pixels_are_those_of_the_processor(self, planes, format, full):
        pytest.importorskip("torch")
        own, stored = both(planes, full=full)
        wanted = Converter(format).pixels(own)
        found = ArrayConverter(TorchArrays(None), format, None).pixels(stored)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one.numpy(), other)

    def test_a_batch_is_a_tensor(self, film):
        torch = pytest.importorskip("torch")
        there = fragdex.Frames(film, output="torch")[[5, 3]]
        assert isinstance(there.data, torch.Tensor)
        here = fragdex.Frames(film)[[5, 3]]
        np.testing.assert_array_equal(np.asarray(there), here.data)
        assert there._repr_html_() == here._repr_html_()
