"""Colours are the same numbers wherever they are made: swscale's, bit by bit."""

from __future__ import annotations

import io
import itertools
import sys
import types

import av
import numpy as np
import pytest
from av.video.reformatter import VideoReformatter
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import fragdex
from decoding.filming import numbered
from fragdex.data import windows
from fragdex.decoding import pictures as pictures_module
from fragdex.decoding.pictures import Orientation
from fragdex.errors import MissingExtra, UndecodableMedia
from fragdex.frames import frames
from fragdex.frames.arrays import (
    ArrayConverter,
    ArrayGathering,
    IntegerConverter,
    NumpyArrays,
    TorchArrays,
    library_of,
)
from fragdex.frames.conversion import Line, Scaler, coefficients, gray_of, rgb_of, taps
from fragdex.frames.pixels import OF_DEVICES, PLANAR, Converter, is_of_device
from frames.made_pictures import ArraysElsewhere, filled

MATRICES = {"ITU601": 6, "ITU709": 1, "BT2020": 9}
FORMATS = ("rgb", "gray", "rgb16", "gray16", "yuv")


class WithoutOddSides(ArraysElsewhere):
    """As PyAV has it of a device: of odd sides DLPack leaves out the last sample of chroma."""

    def taken(self, plane):
        array = super().taken(plane)
        if array.ndim == 2:
            self.luma = array.shape
            return array
        high, wide = self.luma
        return array[: high // 2, : wide // 2]


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
    lib = ArraysElsewhere()
    colours = rgb_of(lib, luma, cb, cr, coefficients(matrix, full_range=full))
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
                colours = rgb_of(ArraysElsewhere(), luma, cb, cr, known)
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
    stays = ArrayConverter(ArraysElsewhere(), format, size).pixels(stored)
    for pixels in (fetched, stays):
        assert len(pixels) == len(wanted)
        for one, other in zip(pixels, wanted, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


@given(pictures(40), st.sampled_from(["yuv", "rgb", "gray", "rgb16"]))
def test_ten_bits(planes, format):
    deep = [plane.astype("<u2") * 4 + 3 for plane in planes]
    luma, cb, cr = deep
    own = filled("yuv420p10le", deep)
    stored = filled("p010le", [luma << 6, np.stack([cb, cr], 2) << 6])
    wanted = Converter(format).pixels(own)
    for pixels in (
        Converter(format).pixels(stored),
        ArrayConverter(ArraysElsewhere(), format, None).pixels(stored),
    ):
        for one, other in zip(pixels, wanted, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("name", [name for name in OF_DEVICES if name in av.video.format.names])
def test_whatever_a_device_decodes_into_becomes_what_the_processor_decodes(name, full):
    """Chroma that is interleaved is parted, and bits at the upper end come down."""
    own = av.VideoFormat(OF_DEVICES[name], 32, 16)
    bits = own.components[0].bits
    rng = np.random.default_rng(7)
    kind = np.dtype(np.uint8 if bits == 8 else "<u2")
    sides = [(part.height, part.width) for part in own.components]
    planes = [rng.integers(0, 1 << bits, side).astype(kind) for side in sides]
    luma, *chroma = (plane << (0 if bits == 8 else 16 - bits) for plane in planes)
    if av.VideoFormat(name, 32, 16).components[2].plane == 1:
        chroma = [np.stack(chroma, 2)]
    stored = filled(name, [luma, *chroma], full=full)
    wanted = Converter("yuv").pixels(filled(own.name, planes, full=full))
    for pixels in (
        Converter("yuv").pixels(stored),
        IntegerConverter(NumpyArrays(), "yuv", None).pixels(stored),
        ArrayConverter(ArraysElsewhere(), "yuv", None).pixels(stored),
    ):
        for one, other in zip(pixels, wanted, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["yuv420p", "yuv444p", "yuv420p10le"])
def test_a_picture_in_main_memory_is_not_of_a_device_where_those_stay(name):
    picture = av.VideoFrame(32, 16, name)
    assert not is_of_device(picture, stays=True)
    assert is_of_device(picture, stays=False) == name.startswith("yuv444")
    assert is_of_device(av.VideoFrame(32, 16, "nv12"), stays=False)


@pytest.mark.parametrize(("high", "wide"), [(15, 16), (16, 15), (15, 15)])
@pytest.mark.parametrize("conversion", [ArrayConverter, IntegerConverter])
def test_odd_sides_of_a_device_keep_all_of_their_chroma(conversion, high, wide):
    rng = np.random.default_rng(3)
    chroma = (-(-high // 2), -(-wide // 2))
    planes = [rng.integers(0, 256, side, np.uint8) for side in ((high, wide), chroma, chroma)]
    own, stored = both(planes)
    for format in ("rgb", "yuv", "gray"):
        wanted = conversion(ArraysElsewhere(), format, None).pixels(own)
        pixels = conversion(WithoutOddSides(), format, None).pixels(stored)
        for one, other in zip(pixels, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


@given(
    pictures(40), st.sampled_from(["rgb", "gray", "yuv"]), st.booleans(), st.booleans(),
    st.none() | st.tuples(st.integers(1, 60), st.integers(1, 60)), st.sampled_from([1, 6, 9]),
)  # fmt: skip
def test_integers_are_the_same_of_what_a_device_decodes(planes, format, deep, full, size, matrix):
    if deep:
        planes = [plane.astype("<u2") * 4 + 3 for plane in planes]
        luma, cb, cr = planes
        own = filled("yuv420p10le", planes, matrix=matrix, full=full)
        interleaved = [luma << 6, np.stack([cb, cr], 2) << 6]
        stored = filled("p010le", interleaved, matrix=matrix, full=full)
    else:
        own, stored = both(planes, matrix=matrix, full=full)
    wanted = IntegerConverter(NumpyArrays(), format, size).pixels(own)
    pixels = IntegerConverter(ArraysElsewhere(), format, size).pixels(stored)
    assert len(pixels) == len(wanted)
    for one, other in zip(pixels, wanted, strict=True):
        assert one.dtype == other.dtype == (np.uint16 if deep and format == "yuv" else np.uint8)
        np.testing.assert_array_equal(one, other)
    if size is not None:
        assert wanted[0].shape[:2] == size[::-1]
    elif format == "rgb" and not deep:
        np.testing.assert_array_equal(wanted[0], Converter("rgb").pixels(own)[0])
    elif format == "gray":
        shades = [planes[0], *(np.full_like(plane, 512 if deep else 128) for plane in planes[1:])]
        neutral = filled(own.format.name, shades, matrix=matrix, full=full)
        colours = IntegerConverter(NumpyArrays(), "rgb", None).pixels(neutral)[0]
        assert (colours == wanted[0]).all()


@pytest.mark.parametrize("name", sorted(filter(PLANAR.fullmatch, av.video.format.names)))
def test_integers_of_every_depth(name):
    """Planes as they are stored; the most that they hold stays the most in every size."""
    stored = av.VideoFormat(name, 16, 8)
    most = (1 << stored.components[0].bits) - 1
    kind = np.uint8 if most == 255 else np.dtype("<u2")
    rng = np.random.default_rng(5)
    sides = [(part.height, part.width) for part in stored.components]
    frame = filled(name, [rng.integers(0, most + 1, side).astype(kind) for side in sides])
    pixels = IntegerConverter(NumpyArrays(), "yuv", None).pixels(frame)
    for one, other in zip(pixels, Converter("yuv").pixels(frame), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    full = filled(name, [np.full(side, most, kind) for side in sides], full=True)
    for one in IntegerConverter(NumpyArrays(), "yuv", (8, 4)).pixels(full):
        assert (one == most).all()
    neutral = [np.full(side, most if place == 0 else (most + 1) // 2, kind)
               for place, side in enumerate(sides)]  # fmt: skip
    for format in ("rgb", "gray"):
        white = IntegerConverter(NumpyArrays(), format, (8, 4)).pixels(
            filled(name, neutral, full=True)
        )[0]
        assert white.dtype == np.uint8
        assert white.min() >= 254


@given(st.integers(1, 200), st.integers(1, 200), st.sampled_from([0, 0.25, 0.5, 0.75]))
def test_each_pixel_is_a_mean_of_those_at_its_place(before, after, start):
    """Also where a line of chroma begins within a sample, and ends within one."""
    span = before - start - (start if before > 2 * start else 0)
    total = np.zeros(after, np.int64)
    middle = np.zeros(after)
    for places, weights in taps(before, Line(after, start, span)):
        assert (places >= 0).all()
        assert (places < before).all()
        assert (weights >= 0).all()
        total += weights
        middle += weights / 16384 * places
    assert (total == 16384).all()
    wanted = start + (np.arange(after) + 0.5) * span / after - 0.5
    wide = max(span / after, 1)
    inside = (wanted > wide - 1) & (wanted < before - wide)
    np.testing.assert_allclose(middle[inside], wanted[inside], atol=0.51)
    if before == after and not start:
        assert [one.tolist() for one, _ in taps(before, Line(after, 0, before))] == [
            list(range(before))
        ]


@given(st.integers(0, 1 << 30), st.tuples(*[st.integers(1, 90)] * 4))
def test_sizes_are_those_of_another_library(seed, sides):
    high, wide, height, width = sides
    noise = np.random.default_rng(seed).integers(0, 256, (high, wide), np.uint8)
    scaled = Scaler(NumpyArrays()).scaled(noise, Line(height, 0, high), Line(width, 0, wide), 8)
    theirs = Image.fromarray(noise).resize((width, height), Image.Resampling.BILINEAR)
    # It rounds to 8 bits between the directions.
    assert np.abs(scaled - np.asarray(theirs).astype(np.int32)).max() <= 1


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(
    ("matrix", "red", "blue"), [(6, 0.299, 0.114), (1, 0.2126, 0.0722), (9, 0.2627, 0.0593)]
)
def test_ten_bits_become_the_colours_of_the_standard(matrix, red, blue, full):
    """ITU-T H.273, 8.3, in real numbers."""
    luma, cb, cr = np.meshgrid(*[np.arange(64, 961, 28)] * 3, indexing="ij")
    luma, cb, cr = (one.reshape(1, -1).astype("<u2") for one in (luma, cb, cr))
    frame = filled("yuv444p10le", [luma, cb, cr], matrix=matrix, full=full)
    (rgb,) = IntegerConverter(NumpyArrays(), "rgb", None).pixels(frame)
    y = luma / 1023 if full else (luma - 64.0) / 876
    b, r = ((one - 512.0) / (1023 if full else 896) for one in (cb, cr))
    colours = [y + 2 * (1 - red) * r, None, y + 2 * (1 - blue) * b]
    colours[1] = (y - red * colours[0] - blue * colours[2]) / (1 - red - blue)
    wanted = np.clip(np.stack(colours, -1), 0, 1) * 255
    assert np.abs(rgb - wanted).max() < 3  # of green three numbers are cut off, as by swscale


@pytest.fixture(scope="module")
def film():
    return numbered(60, 30, keys=20, size=(512, 64))


@pytest.fixture
def on_a_device(monkeypatch):
    """Pictures come as a device stores them, and stay as arrays of a library."""
    lib = ArraysElsewhere()
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


def test_integers_everywhere(film, on_a_device):
    for format, size in (("gray", (100, 30)), ("yuv", (64, 8)), ("rgb", (512, 64)), ("rgb", None)):
        options = {"format": format, "size": size, "conversion": "integer"}
        there = fragdex.Frames(film, output="torch", **options)[[9, 30]].data
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(frames, "library_of", lambda output, device: None)
            here = fragdex.Frames(film, **options)[[9, 30]].data
        assert format == "yuv" or here.shape[1:3] == (size or (512, 64))[::-1]
        for one, other in zip(there, here, strict=True):
            for mine, theirs in zip(one, other, strict=True):
                np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("is_there", [True, False])
def test_pictures_stay_on_a_device_that_their_library_can_use(
    film, on_a_device, on_device, monkeypatch, is_there
):
    monkeypatch.setattr(on_a_device, "is_on_device", is_there)
    frames = fragdex.Frames(film, device="cuda", output="torch")
    assert frames._opened.decoders.stays == is_there


@pytest.mark.parametrize("format", ["rgb", "yuv"])
def test_windows_that_other_threads_made_are_handed_over(
    film, tmp_path, on_a_device, monkeypatch, format
):
    monkeypatch.setattr(windows, "library_of", lambda output, device: on_a_device)
    (tmp_path / "a.mp4").write_bytes(film)
    fragdex.data.write_set(tmp_path, tmp_path / "set.parquet")
    videos = fragdex.data.VideoSet(tmp_path / "set.parquet")
    some = fragdex.data.Windows(videos, frames=2, step=20, format=format, output="torch")
    pixels = [one["frames"] for one in some.several([2, 0])]
    arrays = pixels if format == "rgb" else [plane for planes in pixels for plane in planes]
    assert [id(one) for one in on_a_device.handed_over] == [id(one) for one in arrays]


def test_frames_that_are_damaged_are_blank(on_a_device):
    gathering = ArrayGathering(
        on_a_device, [0, 1], [], lambda: ArrayConverter(on_a_device, "rgb", None)
    )
    luma, chroma = np.full((64, 512), 90, np.uint8), np.full((32, 256), 99, np.uint8)
    gathering.give(0, filled("yuv420p", [luma, chroma, chroma]))
    (pixels,) = gathering.arrays([1], (512, 64))
    assert pixels[0].any()
    assert not pixels[1].any()
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
    with pytest.raises(ValueError, match="conversion is one of swscale, integer, not 'float'"):
        fragdex.Frames(film, conversion="float")
    with pytest.raises(ValueError, match="makes rgb, gray and yuv, not rgb16"):
        fragdex.Frames(film, conversion="integer", format="rgb16")
    with pytest.raises(ValueError, match='needs device="cuda"'):
        fragdex.Frames(film, output="cupy")
    for name in ("torch", "cupy"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(MissingExtra, match=f'output="{name}" needs'):
            library_of(name, "cuda")


class _Stream:
    """A stream of CUDA as far as CuPy's arrays use one; everything is done at once."""

    def __init__(self):
        self.waited_for = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def record(self):
        return self

    def wait_event(self, event):
        self.waited_for.append(event)


@pytest.fixture
def cupy(monkeypatch):
    """Of CuPy what is used, by numpy: it has no arrays in main memory."""
    null, current = _Stream(), _Stream()
    stream = types.SimpleNamespace(null=null)
    cuda = types.SimpleNamespace(
        Device=lambda number: _Stream(), Stream=stream, get_current_stream=lambda: current
    )
    module = types.ModuleType("cupy")
    module.minimum, module.stack, module.asarray = np.minimum, np.stack, np.array
    module.zeros_like = np.zeros_like
    module.from_dlpack, module.cuda, module.current = np.from_dlpack, cuda, current
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


@given(pictures(), st.sampled_from(["rgb", "gray", "yuv"]), st.none() | st.just((13, 21)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
def test_arrays_of_cupy_are_asked_for_what_it_has(cupy, planes, format, size):
    own, stored = both(planes)
    lib = library_of("cupy", "cuda:1")
    wanted = IntegerConverter(NumpyArrays(), format, size).pixels(own)
    for one, other in zip(IntegerConverter(lib, format, size).pixels(stored), wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    if size is None:
        pixels = ArrayConverter(lib, format, None).pixels(stored)
        for one, other in zip(pixels, Converter(format).pixels(own), strict=True):
            np.testing.assert_array_equal(one, other)
    lib.hand_over([])
    assert cupy.current.waited_for[-1] is cupy.cuda.Stream.null


class TestTorch:
    """The same with torch in main memory, where it is installed; no extra brings it."""

    @given(pictures(), st.sampled_from(FORMATS), st.booleans())
    def test_pixels_are_those_of_the_processor(self, planes, format, full):
        pytest.importorskip("torch")
        own, stored = both(planes, full=full)
        wanted = Converter(format).pixels(own)
        pixels = ArrayConverter(TorchArrays(None), format, None).pixels(stored)
        for one, other in zip(pixels, wanted, strict=True):
            np.testing.assert_array_equal(one.numpy(), other)

    @given(
        pictures(), st.sampled_from(["rgb", "gray", "yuv"]), st.booleans(),
        st.tuples(st.integers(1, 60), st.integers(1, 60)),
    )  # fmt: skip
    def test_integers_are_those_of_numpy(self, planes, format, full, size):
        pytest.importorskip("torch")
        own, stored = both(planes, full=full)
        wanted = IntegerConverter(NumpyArrays(), format, size).pixels(own)
        pixels = IntegerConverter(TorchArrays(None), format, size).pixels(stored)
        for one, other in zip(pixels, wanted, strict=True):
            np.testing.assert_array_equal(one.numpy(), other)

    def test_a_batch_is_a_tensor(self, film):
        torch = pytest.importorskip("torch")
        there = fragdex.Frames(film, output="torch")[[5, 3]]
        assert isinstance(there.data, torch.Tensor)
        here = fragdex.Frames(film)[[5, 3]]
        np.testing.assert_array_equal(np.asarray(there), here.data)
        assert there._repr_html_() == here._repr_html_()

    def test_planes_of_a_device_are_asked_for_without_a_stream(self):
        """PyAV refuses every stream, and torch names its own where it sees a device of CUDA."""
        pytest.importorskip("torch")

        class Plane:
            def __dlpack_device__(self):
                return 2, 0

            def __dlpack__(self, *, stream=None):
                assert stream is None
                return np.arange(6, dtype=np.uint8).__dlpack__()

        assert TorchArrays(None).taken(Plane()).tolist() == [0, 1, 2, 3, 4, 5]

    @pytest.mark.parametrize("kind", [np.uint8, np.uint16])
    @pytest.mark.parametrize("turns", list(itertools.product([False, True], repeat=3)))
    def test_arrays_of_both_widths_are_stacked_turned_and_blank(self, kind, turns):
        pytest.importorskip("torch")
        theirs, ours = TorchArrays(None), NumpyArrays()
        one = np.arange(6).astype(kind).reshape(2, 3) << (8 * (np.dtype(kind).itemsize - 1))
        turned = theirs.turned(theirs.sent(one), Orientation(*turns))
        both = theirs.copied(theirs.stacked([turned, theirs.blank(turned)], 0))
        wanted = ours.turned(one, Orientation(*turns))
        np.testing.assert_array_equal(both.numpy(), np.stack([wanted, 0 * wanted]))
        assert both.numpy().dtype == kind
