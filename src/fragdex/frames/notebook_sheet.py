"""Contact sheets: frames as a notebook shows them."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from fragdex.decoding.picture_files import encoded
from fragdex.errors import MissingExtra

__all__ = ["sheet_html", "sheet_png"]

MOST: Final = 48
"""Frames on a sheet."""
WIDTH: Final = 160
"""Pixels of a frame on a sheet, at most."""
COLUMNS: Final = 6
_GAP: Final = 4


class Shown(Protocol):
    """What this module wants of a `FrameBatch`."""

    @property
    def data(self) -> Any:
        """Pixels."""

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        """Of the frames."""

    @property
    def times(self) -> npt.NDArray[np.float64]:
        """Seconds."""


def sheet_html(batch: Shown) -> str | None:
    """Frames beside each other, with number and time; None where Pillow is not installed.

    The first 48 of a batch; what is left is counted.
    """
    try:
        sources = [
            "data:image/jpeg;base64," + base64.b64encode(encoded(one, "jpeg", 80)).decode()
            for one in _small(batch)
        ]
    except MissingExtra:
        return None
    # Only numbers come here: nothing to escape.
    figures = [
        f'<figure style="margin:0"><img src="{source}" alt="frame {number}">'
        f'<figcaption style="font:11px sans-serif">{number} · {time:.3f} s</figcaption></figure>'
        for source, number, time in zip(
            sources, batch.numbers.tolist(), batch.times.tolist(), strict=False
        )
    ]
    left = len(batch.numbers) - len(figures)
    more = f'<p style="font:11px sans-serif">and {left} more</p>' if left else ""
    grid = f'<div style="display:flex;flex-wrap:wrap;gap:{_GAP}px">{"".join(figures)}</div>'
    return grid + more if figures else "<p>no frames</p>"


def sheet_png(batch: Shown) -> bytes | None:
    """The same as one picture, without text; None where there is none, or no Pillow."""
    pictures = list(_small(batch))
    if not pictures:
        return None
    high, wide = (max(one.shape[side] for one in pictures) for side in (0, 1))
    columns = min(COLUMNS, len(pictures))
    lines = -(-len(pictures) // columns)
    sheet = np.full(
        (lines * (high + _GAP) - _GAP, columns * (wide + _GAP) - _GAP, 3), 255, np.uint8
    )
    for place, one in enumerate(pictures):
        top, left = place // columns * (high + _GAP), place % columns * (wide + _GAP)
        sheet[top : top + one.shape[0], left : left + one.shape[1]] = one
    try:
        return encoded(sheet, "png", 80)
    except MissingExtra:
        return None


def _small(batch: Shown) -> Iterator[npt.NDArray[np.uint8]]:
    """The first frames as uint8 of shape (height, width, 3), small; of planes the luma."""
    data = batch.data
    planes = data[0][..., None] if isinstance(data, tuple) else data
    bits = 8
    if planes.dtype == np.uint16:
        bits = 16
        if isinstance(data, tuple):  # planes do not say how many of their bits are used
            bits = max(9, int(planes.max(initial=0)).bit_length())
    for one in planes[:MOST]:
        step = -(-one.shape[1] // WIDTH)
        small = _averaged(one, step) >> (bits - 8)
        yield np.ascontiguousarray(np.broadcast_to(small, (*small.shape[:2], 3)).astype(np.uint8))


def _averaged(one: npt.NDArray[Any], step: int) -> npt.NDArray[Any]:
    """A picture smaller by a whole number, each pixel the mean of a square."""
    if step < 2 or min(one.shape[:2]) < step:
        return one
    high, wide = one.shape[0] // step, one.shape[1] // step
    cut = one[: high * step, : wide * step]
    means: npt.NDArray[Any] = cut.reshape(high, step, wide, step, -1).mean((1, 3))
    small: npt.NDArray[Any] = means.astype(one.dtype)
    return small
