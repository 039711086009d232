"""`fragdex render --estimate`: what a film costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fragdex.cli.output import json_line, say
from fragdex.cli.render_notes import tell

if TYPE_CHECKING:
    from fragdex.rendering.plan import RenderSpec
    from fragdex.rendering.pool import PageSource

__all__ = ["estimate_page"]


def estimate_page(
    jobs: int | None, slices: int | None, name: str, page: PageSource, spec: RenderSpec, json: bool
) -> int:  # fmt: skip
    """Say what the film of a page needs; returns the exit code."""
    from fragdex.rendering.estimate import estimate

    made = estimate(page, spec, jobs=jobs, slices=slices)
    tell(made.notes)
    width, height = made.view.frame
    if json:
        facts = {
            "page": name,
            "width": width,
            "height": height,
            "frames": len(made.frames),
            "frames_drawn": made.drawn,
            "browsers": made.browsers,
            "seconds": round(made.seconds, 3),
            "seconds_with_one_browser": round(made.alone_seconds, 3),
            "processor_seconds": round(made.processor_seconds, 3),
            "memory_bytes": made.memory_bytes,
            "film_bytes": made.film_bytes,
            "disk_bytes": made.disk_bytes,
        }
        say(json_line(facts))
        return 0
    many = "1 browser" if made.browsers == 1 else f"{made.browsers} browsers"
    alone = "" if made.browsers == 1 else f" ({_time(made.alone_seconds)} with one)"
    say(
        f"{name}: {len(made.frames):,} frames of {width}×{height}: about {_time(made.seconds)} with"
        f" {many}{alone}, {_time(made.processor_seconds)} of processor time,"
        f" {_size(made.memory_bytes)} of memory, a film of"
        f" {_size(made.film_bytes)} without its sound, {_size(made.disk_bytes)} of disk meanwhile;"
        f" foreseen from {made.drawn} frames\n"
    )
    return 0


def _time(seconds: float) -> str:
    """A duration, as exact as a forecast is.

    >>> _time(8.26), _time(75), _time(4000)
    ('8.3 s', '1:15 min', '1:06 h')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02} h"


def _size(count: int) -> str:
    """Bytes, as exact as a forecast is.

    >>> _size(2_500), _size(300 << 20), _size(5 << 30)
    ('2.4 KiB', '300.0 MiB', '5.0 GiB')
    """
    if count < 1000 << 10:
        return f"{count / 2**10:,.1f} KiB"
    if count < 1000 << 20:
        return f"{count / 2**20:,.1f} MiB"
    return f"{count / 2**30:,.1f} GiB"
