"""A part of a frame has the pixels of the whole; scaled, those of a video of that part."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from decoding.filming import MATRICES, numbered, shown_by
from fragdex.data import VideoSet, Windows, write_set
from fragdex.errors import UndecodableMedia
from fragdex.frames.arrays import ArrayConverter, IntegerConverter, NumpyArrays, TorchArrays
from fragdex.frames.crop import crop_of
from fragdex.frames.pixels import Converter
from frames.made_pictures import ArraysElsewhere, filled

STEPS = {
    "yuv420p": (2, 2), "yuvj420p": (2, 2), "yuv422p": (1, 2), "yuv444p": (1, 1),
    "yuv411p": (1, 4), "yuv420p10le": (2, 2), "gray": (1, 1), "rgb24": (1, 1),
}  # fmt: skip


@st.composite
def boxes(draw, high, wide):
    left, top = draw(st.integers(0, wide - 1)), draw(st.integers(0, high - 1))
    return left, top, draw(st.integers(left + 1, wide)), draw(st.integers(top + 1, high))


@st.composite
def cut_pictures(draw):
    """A picture of any kind: its name, its planes, and a part of it."""
    name = draw(st.sampled_from(sorted(STEPS)))
    high, wide = draw(st.integers(1, 50)), draw(st.integers(1, 50))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    kind, most = (np.dtype("<u2"), 1024) if name.endswith("10le") else (np.dtype(np.uint8), 256)
    down, right = STEPS[name]
    shapes = [(high, wide)] + [(-(-high // down), -(-wide // right))] * 2 * name.startswith("yuv")
    if name == "rgb24":
        shapes = [(high, wide, 3)]
    planes = [rng.integers(0, most, shape).astype(kind) for shape in shapes]
    return name, planes, draw(boxes(high, wide))


def cut_by_hand(planes, box, steps):
    left, top, right, bottom = box
    down, across = steps
    inside = slice(top // down, -(-bottom // down)), slice(left // across, -(-right // across))
    return [planes[0][top:bottom, left:right], *(plane[inside] for plane in planes[1:])]


def converters(size):
    """Every way of making pixels of what the processor decodes."""
    for format in ("rgb", "gray", "rgb16", "gray16", "yuv"):
        yield format, Converter(format, size)
        yield format, ArrayConverter(ArraysElsewhere(), format, size)
        if not format.endswith("16"):
            yield format, IntegerConverter(NumpyArrays(), format, size)


def copies(arrays):
    return [np.array(one) for one in arrays]


@given(cut_pictures(), st.sampled_from([1, 2]))
def test_a_part_has_the_pixels_of_the_whole(picture, matrix):
    name, planes, box = picture
    left, top, right, bottom = box
    frame, crop = filled(name, planes, matrix=matrix), crop_of(box)
    down, across = STEPS[name]
    for format, converter in converters(None):
        if format == "rgb16" and frame.width % 2:
            continue  # swscale's last column of these is not the same twice
        whole = copies(converter.pixels(frame))
        if format == "yuv" and (left % across or top % down):
            with pytest.raises(UndecodableMedia, match="the crop begins between two"):
                converter.pixels(frame, crop)
            continue
        for size in (None, crop.size):  # its own size is no other
            converter._size = size
            pixels = copies(converter.pixels(frame, crop))
            wanted = (
                cut_by_hand(whole, box, STEPS[name])
                if format == "yuv"
                else [one[top:bottom, left:right] for one in whole]
            )
            for one, other in zip(pixels, wanted, strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_array_equal(one, other)


@given(cut_pictures(), st.tuples(st.integers(1, 40), st.integers(1, 40)), st.sampled_from([1, 6]))
def test_a_part_is_scaled_as_if_it_were_the_whole(picture, size, matrix):
    name, planes, box = picture
    frame, crop, steps = filled(name, planes, matrix=matrix), crop_of(box), STEPS[name]
    if size == crop.size:  # the pixels of the whole: tried above
        size = (size[0] + 1, size[1])
    between = box[0] % steps[1] or box[1] % steps[0]
    if between:  # chroma is repeated first
        high, wide = planes[0].shape
        planes = [planes[0], *(one.repeat(steps[0], 0).repeat(steps[1], 1)[:high, :wide]
                               for one in planes[1:])]  # fmt: skip
        name, steps = name.replace("420p", "444p").replace("422p", "444p"), (1, 1)
        name = name.replace("411p", "444p")
    small = filled(name, cut_by_hand(planes, box, steps), matrix=matrix)
    for format, converter in converters(size):
        if between and (format == "yuv" or isinstance(converter, IntegerConverter)):
            pixels = converter.pixels(frame, crop)
            assert [one.shape[:2] for one in pixels[:1]] == [size[::-1]]
            continue
        if name == "rgb24":  # swscale makes what is wanted of all of it first
            continue
        pixels = copies(converter.pixels(frame, crop))
        for one, other in zip(pixels, converter.pixels(small), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


@given(boxes(40, 60), st.tuples(st.integers(1, 50), st.integers(1, 50)), st.booleans())
def test_colours_stay_where_they_are(box, size, across):
    """A slope of chroma: where a part begins between samples, each pixel has that of its place."""
    if size == crop_of(box).size:  # chroma is repeated
        size = (size[0] + 1, size[1] + 1)
    slope = np.arange(60 if across else 40) * 3.0 + 60
    chroma = np.rint((slope[::2] + slope[1::2]) / 2).astype(np.uint8)
    chroma = np.broadcast_to(chroma if across else chroma[:, None], (20, 30))
    frame = filled("yuv420p", [np.full((40, 60), 128, np.uint8), chroma, np.full_like(chroma, 128)])
    (colours,) = IntegerConverter(NumpyArrays(), "rgb", size).pixels(frame, crop_of(box))
    begin, end = (box[0], box[2]) if across else (box[1], box[3])
    after = size[0] if across else size[1]
    place = begin + (np.arange(after) + 0.5) * (end - begin) / after - 0.5
    wanted = 60 + 3.0 * place
    blue = colours[0, :, 2] if across else colours[:, 0, 2]
    cb = 128 + (blue - (128 - 16) * 255 / 219) * 224 / 255 / 1.772
    wide = max((end - begin) / after, 2)
    inside = (place > begin + wide) & (place < end - 1 - wide) & (blue > 0) & (blue < 255)
    assert np.abs(cb - wanted)[inside].max(initial=0) < 2


@given(
    st.data(), st.sampled_from(["rgb", "gray", "yuv"]), st.booleans(),
    st.none() | st.tuples(st.integers(1, 40), st.integers(1, 40)),
)  # fmt: skip
def test_parts_of_what_a_device_decodes(data, format, deep, size):
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 30)))
    high, wide = (2 * data.draw(st.integers(1, 25)) for _ in range(2))
    box = data.draw(boxes(high, wide))
    if format == "yuv" and size is None:
        box = (box[0] & ~1, box[1] & ~1, box[2], box[3])
    crop = crop_of(box)
    shapes = (high, wide), (high // 2, wide // 2), (high // 2, wide // 2)
    luma, cb, cr = (rng.integers(0, 1024 if deep else 256, one).astype("<u2") for one in shapes)
    if deep:
        own = filled("yuv420p10le", [luma, cb, cr])
        stored = filled("p010le", [luma << 6, np.stack([cb, cr], 2) << 6])
    else:
        luma, cb, cr = (one.astype(np.uint8) for one in (luma, cb, cr))
        own = filled("yuv420p", [luma, cb, cr])
        stored = filled("nv12", [luma, np.stack([cb, cr], 2)])
    pairs = [
        (Converter(format, size), ArrayConverter(ArraysElsewhere(), format, size)),
        (
            IntegerConverter(NumpyArrays(), format, size),
            IntegerConverter(ArraysElsewhere(), format, size),
        ),
    ]
    for here, there in pairs:
        wanted = copies(here.pixels(own, crop))
        for one, other in zip(there.pixels(stored, crop), wanted, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module")
def film():
    return numbered(24, 25, keys=8, size=(128, 32))


@pytest.mark.parametrize("name", MATRICES)
def test_boxes_count_in_frames_as_they_are_shown(name):
    film = shown_by(numbered(2, 25, keys=2, bframes=0, fragmented=False), MATRICES[name][0])
    for rotate in (True, False):
        with fragdex.Frames(film, rotate=rotate) as frames:
            whole = frames[1].data
            high, wide = whole.shape[:2]
            box = 5, 3, wide - 9, high - 2
            part = fragdex.Frames(film, rotate=rotate, crop=box)
            wanted = whole[3:-2, 5:-9]
            assert part.shape[1:] == wanted.shape
            assert part.full_size == frames.full_size == (wide, high)
            np.testing.assert_array_equal(part[1].data, wanted)
            np.testing.assert_array_equal(part[1, 2:4].astype(int), wanted[2:4])
            small = fragdex.Frames(film, rotate=rotate, crop=(0, 0, 20, 10), size=(8, 4))
            assert small[0].data.shape == (4, 8, 3)


def test_each_frame_with_a_box_of_its_own(film):
    with fragdex.Frames(film, crop=(0, 0, 2, 2)) as frames, fragdex.Frames(film) as whole:
        boxes = [(1, 1, 31, 21), (97, 11, 127, 31), (64, 0, 94, 20), (1, 1, 31, 21)]
        numbers = [9, 9, 20, 3]
        before = frames.decoded
        batch = frames.take(numbers, boxes=boxes)
        assert frames.decoded - before <= whole.plan([9, 20, 3]).decoded
        assert batch.numbers.tolist() == numbers
        for one, number, (left, top, right, bottom) in zip(batch.data, numbers, boxes, strict=True):
            np.testing.assert_array_equal(one, whole[number].data[top:bottom, left:right])
        with pytest.raises(ValueError, match="4 boxes for 3 frames"):
            frames.take([1, 2, 3], boxes=boxes)
        with pytest.raises(UndecodableMedia, match=r"several sizes: 30 × 20 and 2 × 2"):
            frames.take([9, 9], boxes=[boxes[0], (0, 0, 2, 2)])
        with pytest.raises(UndecodableMedia, match=r"128 × 32, and the crop reaches to 129 × 5"):
            frames.take([9], boxes=[(100, 0, 129, 5)])
    other = copy.copy(fragdex.Frames(film, crop=(2, 2, 12, 8), format="gray"))
    assert other[:2].data.shape == (2, 6, 10, 1)


@pytest.mark.parametrize(
    "box", [(0, 0, 0, 4), (-1, 0, 4, 4), (0, 5, 4, 5), (0, 0, 4), (0, 0, 1.5, 4), (0, 0, None, 2)]
)
def test_what_is_no_box(film, box):
    with pytest.raises(ValueError, match=r"crop is \(left, top, right, bottom\)"):
        fragdex.Frames(film, crop=box)


def corner(window, size):
    """A box that depends on the window and on the video."""
    left = 2 * (window % 5)
    return left, 1, size[0] - 16 + left, size[1] - 2


@pytest.mark.parametrize("crop", [(16, 3, 80, 31), corner], ids=["fixed", "each"])
def test_windows_of_parts(film, tmp_path, crop):
    (tmp_path / "a.mp4").write_bytes(film)
    (tmp_path / "b.mp4").write_bytes(numbered(20, 25, keys=8, size=(128, 32)))
    write_set(tmp_path, tmp_path / "set.parquet")
    videos = VideoSet(tmp_path / "set.parquet")
    whole = Windows(videos, frames=4, step=2)
    parts = Windows(videos, frames=4, step=2, crop=crop)
    numbers = [3, 4, 12, 0]
    batch = parts.batch(numbers)
    assert ("crop" in batch) == (crop is corner)
    assert parts.batch_bytes(2) <= whole.batch_bytes(2)
    for place, (number, one) in enumerate(zip(numbers, parts.__getitems__(numbers), strict=True)):
        left, top, right, bottom = corner(number, (128, 32)) if crop is corner else crop
        wanted = whole[number]["frames"][:, top:bottom, left:right]
        np.testing.assert_array_equal(batch["frames"][place], wanted)
        np.testing.assert_array_equal(one["frames"], wanted)
        if crop is corner:
            assert (
                one["crop"].tolist()
                == batch["crop"][place].tolist()
                == list(corner(number, (128, 32)))
            )
    scaled = Windows(videos, frames=4, crop=crop, size=(64, 16), format="gray")
    assert scaled.batch([0, 1])["frames"].shape == (2, 4, 16, 64, 1)


def test_a_torch_tensor_has_the_same_pixels(film):
    pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    luma, cb, cr = (rng.integers(0, 256, one, np.uint8) for one in ((30, 44), (15, 22), (15, 22)))
    frame, crop = filled("yuv420p", [luma, cb, cr]), crop_of((3, 5, 40, 28))
    for format in ("rgb", "gray", "yuv"):
        for size in (None, (20, 9)):
            if format == "yuv" and size is None:
                continue
            here = IntegerConverter(NumpyArrays(), format, size).pixels(frame, crop)
            there = IntegerConverter(TorchArrays(None), format, size).pixels(frame, crop)
            for one, other in zip(there, here, strict=True):
                np.testing.assert_array_equal(one.numpy(), other)
    tensor = fragdex.Frames(film, output="torch").take([3, 3], boxes=[(0, 0, 9, 9), (8, 8, 17, 17)])
    assert tuple(tensor.data.shape) == (2, 9, 9, 3)
