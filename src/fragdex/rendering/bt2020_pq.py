"""Colours of pages (sRGB) in BT.2020 with PQ: a table in which FFmpeg's `lut3d` looks them up.

FFmpeg's `scale` would make one itself: 1.7 s in each process, and dark colours up to 24 levels of
10 bits from what they are, since its steps are those of sRGB. The steps of this one are those of
PQ: within two levels everywhere, with an eighth of the colours.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np

    Values = np.ndarray[Any, np.dtype[np.float64]]

WHITE: Final = 203
"""White of sRGB, in cd/m² (ITU-R BT.2408, 2.1)."""

_PEAK: Final = 10_000
_M1, _M2 = 2610 / 16384, 2523 / 32
_C1, _C2, _C3 = 3424 / 4096, 2413 / 128, 2392 / 128
# ITU-R BT.2087: primaries of BT.709 in those of BT.2020.
_TO_BT_2020: Final = (
    (0.6274, 0.3293, 0.0433),
    (0.0691, 0.9195, 0.0114),
    (0.0164, 0.0880, 0.8956),
)
_SIDE: Final = 33
# FFmpeg samples the curve between the 256 levels once more: half a step off at so few points.
_POINTS_A_LEVEL: Final = 16
_LEVELS: Final = 255


@functools.cache
def table() -> str:
    """The table as text, in the form `.csp` (cineSpace): three curves, then colours by red first.

    The curves lead from sRGB to where on the scale of PQ, from black to white, its level stands;
    the colours stand at equal steps of that.
    """
    import numpy as np

    levels = np.arange(_LEVELS * _POINTS_A_LEVEL + 1) / (_LEVELS * _POINTS_A_LEVEL)
    black, white = _pq(np.array([0.0, 1.0]))
    curve = _row(levels) + _row((_pq(_linear(levels)) - black) / (white - black))
    steps = np.arange(_SIDE) / (_SIDE - 1)
    blue, green, red = np.meshgrid(steps, steps, steps, indexing="ij")
    light = _of_pq(black + np.stack([red, green, blue], axis=-1).reshape(-1, 3) * (white - black))
    colours = _pq(light @ np.array(_TO_BT_2020).T)
    return (
        "CSPLUTV100\n3D\n\nBEGIN METADATA\nEND METADATA\n\n"
        + f"{len(levels)}\n{curve}" * 3
        + f"\n{_SIDE} {_SIDE} {_SIDE}\n"
        + "".join(map(_row, colours))
    )


def _row(values: Values) -> str:
    return " ".join([f"{value:.8f}" for value in values.tolist()]) + "\n"


def _linear(srgb: Values) -> Values:
    """Light of levels of sRGB (IEC 61966-2-1), both from 0 to 1."""
    import numpy as np

    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def _pq(light: Values) -> Values:
    """PQ (ITU-R BT.2100, table 4) of light, of which 1 is white."""
    power = (light * (WHITE / _PEAK)) ** _M1
    levels: Values = ((_C1 + _C2 * power) / (1 + _C3 * power)) ** _M2
    return levels


def _of_pq(levels: Values) -> Values:
    """The light of such levels."""
    import numpy as np

    power = levels ** (1 / _M2)
    light: Values = (np.maximum(power - _C1, 0) / (_C2 - _C3 * power)) ** (1 / _M1)
    return light * (_PEAK / WHITE)
