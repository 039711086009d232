"""From one sampling rate to another, the same values whatever the cut.

Sample n of a rate is the one at n / rate seconds of presentation time. FFmpeg's filter takes each
output sample from the input around it; where the input begins at a place that is a sample of both
rates, the values depend on nothing else.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fragdex.decoding.mixing import Floats

__all__ = ["needed", "resampled"]

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
    found: Floats = whole.T
    return found
