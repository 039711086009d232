"""Strips become sound, block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from fragdex.service.renders.media.opening import OpenMedia
from fragdex.service.renders.media.strips import SoundStrip

__all__ = ["mix"]


def mix(
    strips: Iterable[SoundStrip], open_media: OpenMedia, duration: float
) -> Iterator[npt.NDArray[np.float32]]:
    """The sound of a render.

    Args:
        strips: of all slices, by `joined`.
        open_media: URL or file name of a strip → what is decoded.
        duration: seconds.

    Yields: arrays of (at most 48,000) × 2 float32 between -1 and 1; together as many samples as
    the duration has, rounded.
    """
    raise NotImplementedError
