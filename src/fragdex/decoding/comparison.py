"""Two videos compared: which frames and which samples differ, how much, and where.

Frame n of one is compared with frame n of the other, sample n with sample n, as they are decoded.
Memory is that of a few frames, however long the videos are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import field
from itertools import zip_longest
from typing import Any, Final

import numpy as np

from fragdex.decoding.codec import open_container
from fragdex.decoding.pictures import rgb_of
from fragdex.errors import MissingExtra, UndecodableMedia
from fragdex.record import record

MOST_REPORTED: Final = 1000
"""Differing frames that are listed one by one; all of them are counted."""

_WINDOW: Final = 8
_BLOCK: Final = 1 << 16
Pixels = np.ndarray[Any, Any]


@record(frozen=True, slots=True)
class FrameDifference:
    """A frame that differs.

    Attributes:
        frame: its number, from 0.
        seconds: when it is shown in the first video.
        psnr: dB over all channels; lower is more different.
        ssim: of the brightness, mean over windows of 8 × 8 pixels; 1 is the same.
        largest: the largest difference of a channel, 0–255.
        box: left, top, width and height of what differs, in pixels.
    """

    frame: int
    seconds: float | None
    psnr: float
    ssim: float
    largest: float
    box: tuple[int, int, int, int]


@record(slots=True)
class SoundComparison:
    """The sound of two videos.

    Attributes:
        samples: how many each has, one channel counted; None: it has no sound.
        rates, channels: of each.
        differing: samples that differ in any channel, those that only one has included.
        first: seconds of the first of them; None: none differs.
        largest: the largest difference, of full scale 1.
    """

    samples: tuple[int | None, int | None] = (None, None)
    rates: tuple[int | None, int | None] = (None, None)
    channels: tuple[int | None, int | None] = (None, None)
    differing: int = 0
    first: float | None = None
    largest: float = 0.0

    @property
    def is_equal(self) -> bool:
        """Whether the same is heard."""
        return not self.differing and all(
            one == other for one, other in (self.samples, self.rates, self.channels)
        )


@record(slots=True)
class Comparison:
    """Two videos.

    Attributes:
        frames: how many each has.
        sizes: width and height of the first frame of each; None: it has no pictures.
        differing: frames that differ, those that only one has included.
        told: the first of those that both have.
        worst: that with the lowest PSNR; None: none differs.
        mistimed: frames that are the same and shown at other times.
    """

    frames: tuple[int, int] = (0, 0)
    sizes: tuple[tuple[int, int] | None, tuple[int, int] | None] = (None, None)
    differing: int = 0
    told: list[FrameDifference] = field(default_factory=list)
    worst: FrameDifference | None = None
    mistimed: int = 0
    sound: SoundComparison = field(default_factory=SoundComparison)

    @property
    def is_equal(self) -> bool:
        """Whether they show and sound the same at the same times."""
        return not (self.differing or self.mistimed) and self.sound.is_equal


def compare(
    one: str,
    other: str,
    *,
    tolerance: float = 0,
    worst: Callable[[Pixels, Pixels], object] = lambda *_: None,
) -> Comparison:
    """Compare the first picture track and the first sound track of two local files.

    Args:
        tolerance: the largest difference of a channel (0–255) that counts as the same; of sound as
            much of full scale.
        worst: given both frames whenever they differ more than all before: RGB or RGBA of shape
            (height, width, 3 or 4), uint8.

    Raises:
        UndecodableMedia: one is not media, or is damaged.
        OSError: one cannot be opened.
        MissingExtra: PyAV is not installed (extra `media`).
    """
    comparison = Comparison()
    with ExitStack() as stack:
        pictures = [stack.enter_context(_opened(path, "video")) for path in (one, other)]
        _compare_frames(pictures[0], pictures[1], comparison, tolerance, worst)
    with ExitStack() as stack:
        sounds = [stack.enter_context(_opened(path, "audio")) for path in (one, other)]
        _compare_sound(sounds[0], sounds[1], comparison.sound, tolerance / 255)
    if comparison.sizes == (None, None) and comparison.sound.samples == (None, None):
        raise UndecodableMedia(f"neither {one} nor {other} has pictures or sound")
    return comparison


_PLAYED: Final = 1
"""AV_DISPOSITION_DEFAULT: the tkhd says that the track is enabled."""


@contextmanager
def _opened(path: str, kind: str) -> Iterator[Iterator[Any]]:
    """The decoded frames of the first track of a kind."""
    with open(path, "rb") as file, _understood(path), open_container(file) as container:
        streams = [one for one in container.streams if one.type == kind]
        stream: Any = next((one for one in streams if one.disposition & _PLAYED), None)
        stream = next(iter(streams), None) if stream is None else stream

        def frames() -> Iterator[Any]:
            if stream is not None:
                with _understood(path):
                    yield from container.decode(stream)

        yield frames()


@contextmanager
def _understood(path: str) -> Iterator[None]:
    try:
        import av
    except ModuleNotFoundError as error:
        raise MissingExtra("comparing videos needs PyAV", extra="media") from error
    try:
        yield
    except av.FFmpegError as error:
        raise UndecodableMedia(f"{path} cannot be decoded: {error.strerror}") from error


def _compare_frames(
    first: Iterator[Any], second: Iterator[Any], comparison: Comparison, tolerance: float,
    worst: Callable[[Pixels, Pixels], object],
) -> None:  # fmt: skip
    counts = [0, 0]
    for number, (a, b) in enumerate(zip_longest(first, second)):
        counts = [counts[0] + (a is not None), counts[1] + (b is not None)]
        if number == 0:
            comparison.sizes = _size(a), _size(b)
        if a is None or b is None or _size(a) != _size(b):
            comparison.differing += 1
            continue
        pixels = _pixels(a, b)
        difference = _difference(*pixels, number, a.time, tolerance)
        if difference is None:
            comparison.mistimed += _is_mistimed(a, b)
            continue
        comparison.differing += 1
        if len(comparison.told) < MOST_REPORTED:
            comparison.told.append(difference)
        if comparison.worst is None or difference.psnr < comparison.worst.psnr:
            comparison.worst = difference
            worst(*(_shown(one) for one in pixels))
    comparison.frames = (counts[0], counts[1])


def _size(frame: Any) -> tuple[int, int] | None:
    return None if frame is None else (frame.width, frame.height)


def _is_mistimed(a: Any, b: Any) -> bool:
    if a.time is None or b.time is None:
        return False
    return bool(abs(a.time - b.time) > max(float(a.time_base), float(b.time_base)))


def _pixels(a: Any, b: Any) -> tuple[Pixels, Pixels]:
    """Both as RGB or RGBA: of 16 bits where one has more than 8."""
    parts = [part for frame in (a, b) for part in frame.format.components]
    deep = any(part.bits > 8 for part in parts)
    clear = any(part.is_alpha for part in parts)
    name = ("rgba64le" if deep else "rgba") if clear else ("rgb48le" if deep else "rgb24")
    return rgb_of(a, name), rgb_of(b, name)


def _shown(pixels: Pixels) -> Pixels:
    return pixels if pixels.dtype == np.uint8 else (pixels >> 8).astype(np.uint8)


def _difference(
    a: Pixels, b: Pixels, number: int, seconds: float | None, tolerance: float
) -> FrameDifference | None:  # fmt: skip
    if np.array_equal(a, b):
        return None
    unit = 1 if a.dtype == np.uint8 else 257
    # int32 holds the difference of two uint16
    differences = np.abs(a.astype(np.int32) - b)
    of_pixels = differences.max(axis=2)
    largest = float(of_pixels.max()) / unit
    if largest <= tolerance:
        return None
    mse = float(np.square(differences, dtype=np.float64).mean()) / unit**2
    rows, columns = (np.flatnonzero((of_pixels > tolerance * unit).any(axis=at)) for at in (1, 0))
    box = (columns[0], rows[0], columns[-1] - columns[0] + 1, rows[-1] - rows[0] + 1)
    left, top, width, height = map(int, box)
    return FrameDifference(
        number, seconds, round(10 * math.log10(255**2 / mse), 3), round(_ssim(a, b, unit), 6),
        round(largest, 3), (left, top, width, height),
    )  # fmt: skip


def _ssim(a: Pixels, b: Pixels, unit: int) -> float:
    """Structural similarity of the brightness (Wang et al. 2004, equation 13)."""
    x, y = (_windows(one, unit) for one in (a, b))
    mean_x, mean_y = x.mean(axis=1), y.mean(axis=1)
    var_x, var_y = x.var(axis=1), y.var(axis=1)
    both = (x * y).mean(axis=1) - mean_x * mean_y
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    top = (2 * mean_x * mean_y + c1) * (2 * both + c2)
    return float((top / ((mean_x**2 + mean_y**2 + c1) * (var_x + var_y + c2))).mean())


def _windows(pixels: Pixels, unit: int) -> Pixels:
    """Brightness (BT.709), of shape (windows, pixels of one); what does not fill one is left."""
    luma = (pixels[:, :, :3] @ np.array([0.2126, 0.7152, 0.0722], np.float32)) / unit
    high, wide = (max(1, side // _WINDOW) for side in luma.shape)
    tall, broad = (min(_WINDOW, side) for side in luma.shape)
    cut = luma[: high * tall, : wide * broad].reshape(high, tall, wide, broad)
    windows: Pixels = cut.swapaxes(1, 2).reshape(high * wide, tall * broad)
    return windows


def _compare_sound(
    first: Iterator[Any], second: Iterator[Any], comparison: SoundComparison, tolerance: float
) -> None:  # fmt: skip
    a, b = _Sound(first), _Sound(second)
    comparison.rates, comparison.channels = (a.rate, b.rate), (a.channels, b.channels)
    if a.rate is None and b.rate is None:
        return
    alike = a.rate == b.rate and a.channels == b.channels
    at = 0
    while (len(x := a.next())) | (len(y := b.next())):
        both = min(len(x), len(y)) if alike else 0
        differing = np.zeros(max(len(x), len(y)), bool)
        differing[both:] = True
        if both:
            off = np.abs(x[:both] - y[:both]).max(axis=1)
            # what is not a number in one of them only
            odd = ~np.isfinite(off) & (x[:both] != y[:both]).any(axis=1)
            differing[:both] = (off > tolerance) | odd
            comparison.largest = max(comparison.largest, float(np.nan_to_num(off).max()))
        count = int(differing.sum())
        if count and comparison.first is None:
            comparison.first = (at + int(differing.argmax())) / (a.rate or b.rate or 1)
        comparison.differing += count
        at += len(differing)
    comparison.samples = (None if a.rate is None else a.count, None if b.rate is None else b.count)


class _Sound:
    """Decoded sound, in blocks of one length."""

    def __init__(self, frames: Iterator[Any]) -> None:
        self._frames = frames
        self._held: list[Pixels] = []
        self.rate: int | None = None
        self.channels: int | None = None
        self.count = 0
        self._fill(1)

    def next(self) -> Pixels:
        """The next samples, of shape (samples, channels); none at the end."""
        self._fill(_BLOCK)
        if not self._held:
            return np.zeros((0, 1), np.float32)
        whole = np.concatenate(self._held) if len(self._held) > 1 else self._held[0]
        block, rest = whole[:_BLOCK], whole[_BLOCK:]
        self._held = [rest] if len(rest) else []
        self.count += len(block)
        return block

    def _fill(self, samples: int) -> None:
        have = sum(map(len, self._held))
        while have < samples:
            frame = next(self._frames, None)
            if frame is None:
                return
            channels = frame.layout.nb_channels
            if self.rate is None:
                self.rate, self.channels = frame.sample_rate, channels
            if (frame.sample_rate, channels) != (self.rate, self.channels):
                raise UndecodableMedia(
                    f"the sound changes its rate or its channels, to {frame.sample_rate} Hz"
                )
            data = _floats(frame, channels)
            self._held.append(data)
            have += len(data)


def _floats(frame: Any, channels: int) -> Pixels:
    """Samples of full scale 1, of shape (samples, channels)."""
    data = frame.to_ndarray()
    if not frame.format.is_planar:
        data = data.reshape(-1, channels).T
    if data.dtype.kind == "f":
        floats = data.copy()
    elif data.dtype == np.uint8:
        floats = (data.astype(np.float32) - 128) / 128
    else:
        floats = data / np.float64(-int(np.iinfo(data.dtype).min))
    columns: Pixels = np.asarray(floats.T, np.float64)
    return columns
