"""Decoded frames as float32 columns of one or two channels.

Loudness is kept: a channel that goes to both sides goes to each at its own level, and a mix of
several is scaled so that it cannot pass full scale.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

_HALF = 0.5**0.5
# Left and right share of each channel (ITU-R BS.775-3, Annex 4); the low frequency effects are
# left out, as there.
_SHARES = {
    "FL": (1.0, 0.0), "FR": (0.0, 1.0), "FC": (_HALF, _HALF), "LFE": (0.0, 0.0),
    "BL": (_HALF, 0.0), "BR": (0.0, _HALF), "SL": (_HALF, 0.0), "SR": (0.0, _HALF),
    "BC": (0.5, 0.5), "FLC": (1.0, 0.0), "FRC": (0.0, 1.0), "DL": (1.0, 0.0), "DR": (0.0, 1.0),
}  # fmt: skip
_ASIDE = 0.1
"""Share of the channels next to a centre, where speech is wanted: 20 dB less."""
_FULL_SCALE = {np.dtype(np.int16): 2.0**15, np.dtype(np.int32): 2.0**31}


def mixed(frame: Any, channels: int, *, centre: bool = False) -> Floats:
    """The samples of a PyAV audio frame.

    Args:
        frame: of any format, rate and layout.
        channels: 1 or 2.
        centre: a centre channel first, where people speak; the others 20 dB lower.

    Returns: shape (samples, channels), full scale is 1.

    >>> import av
    >>> frame = av.AudioFrame.from_ndarray(np.array([[16384, 0]], np.int16), "s16", "stereo")
    >>> mixed(frame, 1).tolist()
    [[0.25]]
    """
    own = columns(frame)
    count = own.shape[1]
    if count == channels:
        return own
    if count == 1:
        return np.repeat(own, channels, axis=1)
    left, right = _sides(frame, own, centre)
    if channels == 1:
        return ((left + right) * np.float32(0.5))[:, None]
    return np.stack([left, right], axis=1)


def columns(frame: Any) -> Floats:
    """The samples of a PyAV audio frame in its own channels: shape (samples, channels).

    >>> import av
    >>> frame = av.AudioFrame.from_ndarray(np.array([[16384, 0]], np.int16), "s16", "stereo")
    >>> columns(frame).tolist()
    [[0.5, 0.0]]
    """
    array = frame.to_ndarray()
    count = len(frame.layout.channels)
    array = array.T if frame.format.is_planar else array.reshape(-1, count)
    if array.dtype == np.uint8:
        levels: Floats = (array.astype(np.float32) - 128) / np.float32(128)
        return levels
    scale = _FULL_SCALE.get(array.dtype, 1.0)
    values: Floats = array.astype(np.float32, copy=False)
    if scale != 1.0:
        values /= np.float32(scale)
    return finite(values)


def finite(values: Floats) -> Floats:
    """What a broken stream decodes to must not spread through a mix or a filter.

    >>> finite(np.array([0.5, np.nan, -np.inf], np.float32)).tolist()
    [0.5, 0.0, -1.0]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        is_finite = np.isfinite(values.sum())
    return values if is_finite else np.nan_to_num(values, nan=0.0, posinf=1.0, neginf=-1.0)


def planes(frame: Any) -> list[Floats]:
    """The samples of each channel of a PyAV audio frame, without a copy where that can be.

    What a broken stream decodes to is still in them: infinities, and values that are no number.

    >>> import av
    >>> frame = av.AudioFrame.from_ndarray(np.zeros((2, 3), np.float32), "fltp", "stereo")
    >>> [plane.tolist() for plane in planes(frame)]
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    if frame.format.name == "fltp":
        return [np.frombuffer(plane, np.float32, frame.samples) for plane in frame.planes]
    return list(np.ascontiguousarray(columns(frame).T))


def _sides(frame: Any, own: Floats, centre: bool) -> tuple[Floats, Floats]:
    names = [channel.name for channel in frame.layout.channels]
    if len(names) == 2:
        return own[:, 0], own[:, 1]
    shares = [_SHARES.get(name, (0.5, 0.5)) for name in names]
    if centre and "FC" in names:
        shares = [
            share if name == "FC" else (_ASIDE * share[0], _ASIDE * share[1])
            for name, share in zip(names, shares, strict=True)
        ]
    sides = []
    for side in (0, 1):
        total = sum(share[side] for share in shares) or 1.0
        mix = np.zeros(len(own), np.float32)
        for place, share in enumerate(shares):
            if share[side]:
                mix += own[:, place] * np.float32(share[side] / total)
        sides.append(mix)
    return sides[0], sides[1]


MARGIN = 0.05
"""Seconds of input on both sides of the wanted span: longer than the filter."""


def needed(start: int, stop: int, have: int, want: int) -> tuple[int, int]:
    """Samples [low, high) of rate `have` that make samples [start, stop) of rate `want`.

    >>> needed(16000, 32000, 16000, 16000), needed(16000, 32000, 44100, 16000)
    ((16000, 32000), (41895, 90405))
    """
    if have == want:
        return start, stop
    common = math.gcd(have, want)
    step, out = have // common, want // common
    margin = -(-int(have * MARGIN) // step) * step
    return start // out * step - margin, -(-stop // out) * step + margin


def resampled(data: Floats, low: int, start: int, stop: int, have: int, want: int) -> Floats:
    """Samples [start, stop) of rate `want`.

    Args:
        data: shape (samples, channels) of rate `have`: exactly what `needed` tells.
        low: number of its first sample.
    """
    if have == want:
        return data
    import av

    layout = "mono" if data.shape[1] == 1 else "stereo"
    resampler: Any = av.AudioResampler(format="fltp", layout=layout, rate=want)
    frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(data.T), format="fltp", layout=layout)
    frame.sample_rate = have
    parts = [part.to_ndarray() for part in (*resampler.resample(frame), *resampler.resample(None))]
    first = start - low * want // have
    whole = np.concatenate(parts, axis=1)[:, first : first + stop - start]
    columns: Floats = whole.T
    return columns
