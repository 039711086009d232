"""A few frames of a film, drawn by one browser."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from fragdex.rendering.browser.timing import View
from fragdex.rendering.messages import SliceMade
from fragdex.rendering.pool import PageSource
from fragdex.rendering.process import Check, Child, nothing
from fragdex.rendering.seams import OneBrowserNeeded
from fragdex.rendering.stills import Still

__all__ = ["drawn", "evenly"]

_LOSSLESS: Final = Still("png", compression=1)


def evenly(frames: range, most: int) -> tuple[int, ...]:
    """At most so many frames, evenly spaced, the first and the last among them.

    >>> evenly(range(10, 20), 4), evenly(range(2), 4), evenly(range(5), 1)
    ((10, 13, 16, 19), (0, 1), (0,))
    """
    count = min(most, len(frames))
    steps = max(1, count - 1)
    return tuple(frames[round(n * (len(frames) - 1) / steps)] for n in range(count))


def drawn(
    page: PageSource, view: View, frames: Sequence[int], *, check: Check = nothing
) -> Iterator[tuple[bytes, SliceMade]]:
    """Draw frames in rising order; those between them happen without being drawn.

    Of a page that needs all of its frames, those between are drawn, too.

    Args:
        check: called several times a second; what it raises ends the process and its browser.

    Yields: each as PNG, and what was noted until then. The same pixels give the same bytes.

    Raises:
        PageFailed, BrowserGone, EngineUnavailable, TooLarge: as of `ChildPool.draw`.
    """
    with (
        tempfile.TemporaryDirectory(prefix="fragdex-") as folder,
        Child(
            page.site, outside=page.outside, limits=page.limits, watched=page.watched
        ) as child,
    ):  # fmt: skip
        all_drawn = False
        for i in frames:
            draw = partial(
                child.draw, view, range(i, i + 1), Path(folder), still=_LOSSLESS, check=check
            )  # fmt: skip
            try:
                made = draw(all_drawn=all_drawn)
            except OneBrowserNeeded:
                all_drawn = True
                made = draw(all_drawn=True)
            yield Path(made.path).read_bytes(), made
