"""Where the picture changes: frames that differ from those before them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from fragdex.frames.frames import Frames

LEAST: Final = 6.0
"""Difference of two frames, in percent of black to white, from which on the picture changes."""
_SMALL: Final = (48, 27)
_AT_ONCE: Final = 256
_MOST_KEPT: Final = 4096


def small_frames(source: Any, index: Any, **options: Any) -> Frames:
    """Frames of a size in which they are compared; damaged ones are blank."""
    return Frames(source, index, size=_SMALL, format="gray", damaged="blank", **options)


def changes(
    frames: Frames, pairs: Sequence[tuple[int, int]], least: float = LEAST,
    on_compared: Callable[[int], object] = lambda count: None,
) -> tuple[list[tuple[int, float]], int]:  # fmt: skip
    """The first frame after each change, with the difference in percent.

    Args:
        pairs: numbers of frames to compare, the first below the second; where those between them
            are left out and the two differ, the change is searched for by halves.
        least: percent of black to white, mean over the picture.

    Returns: the changes in the order of the pairs, and how many frames were decoded. A damaged
    frame differs from none.
    """
    known: dict[int, np.ndarray[Any, Any] | None] = {}

    def decode(numbers: Iterable[int]) -> None:
        missing = [one for one in dict.fromkeys(numbers) if one not in known]
        for at in range(0, len(missing), _AT_ONCE):
            part = missing[at : at + _AT_ONCE]
            batch = frames[part]
            pixels = np.asarray(batch.data)[..., 0].astype(np.int16)
            known.update(zip(part, pixels, strict=True))
            known.update((part[place], None) for place in batch.missing)
            on_compared(len(known))

    def difference(one: int, other: int) -> float:
        first, second = known[one], known[other]
        if first is None or second is None:
            return 0.0
        return float(np.abs(first - second).mean()) / 2.55

    decode(number for pair in pairs for number in pair)
    left = [pair for pair in pairs if difference(*pair) >= least]
    while any(b - a > 1 for a, b in left):
        middles = [(a + b) // 2 for a, b in left]
        decode(middles)
        left = [
            (a, b) if b - a < 2 else (a, m) if difference(a, m) >= difference(m, b) else (m, b)
            for (a, b), m in zip(left, middles, strict=True)
        ]
    found = ((b, difference(a, b)) for a, b in left)
    return [(number, by) for number, by in found if by >= least], len(known)


def cuts_near(
    frames: Frames, times_ms: Sequence[int], within_ms: int,
    on_compared: Callable[[int, int], object] = lambda done, of: None,
) -> list[int]:  # fmt: skip
    """Hard cuts near some times, in milliseconds of presentation: of the first frame after each.

    If the next frame changes too, that is motion, a flash or a dissolve, and not a cut.

    Args:
        times_ms: near which cuts are searched for; nothing else is decoded but what these need.
        within_ms: how far from them at most.
    """
    if not times_ms or not len(frames):
        return []
    times = np.unique(np.asarray(times_ms, np.int64))
    lows, highs = (
        frames.numbers_at(np.maximum(times + by, 0) / 1000) for by in (-within_ms, within_ms)
    )
    # One more on each side says whether the picture keeps changing.
    near = {
        number
        for low, high in zip(lows.tolist(), highs.tolist(), strict=True)
        for number in range(max(1, low - 1), min(len(frames), high + 2))
    }
    numbers = sorted(near)
    changed: set[int] = set()
    for at in range(0, len(numbers), _MOST_KEPT):
        pairs = [(number - 1, number) for number in numbers[at : at + _MOST_KEPT]]
        changed |= {number for number, _ in changes(frames, pairs)[0]}
        on_compared(at + len(pairs), len(numbers))
    cuts = (
        round(float(frames.times[number]) * 1000)
        for number in sorted(changed)
        if number - 1 not in changed and number + 1 not in changed
    )
    return [cut for cut in cuts if np.abs(times - cut).min() <= within_ms]
