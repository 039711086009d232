"""What `fragdex render` tells of what it made."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fragdex.rendering.films import Film
    from fragdex.rendering.render import Rendered

__all__ = ["facts_of", "line_of"]

_NOTES: Final = ("blocked", "browser", "browser_versions", "console", "glyphs", "incomplete",
                 "refused")  # fmt: skip


def facts_of(
    page: str, output: str, film: Film, made: Rendered, seconds: float,
    given: Mapping[str, Any] | None,
) -> dict[str, Any]:  # fmt: skip
    """What `--json` tells of a render.

    Args:
        page, output: as they were written.
        film: how it is stored.
        seconds: that it took.
        given: the data of the page.
    """
    from fragdex.rendering.site import recorded

    told = made.notes.as_json()
    data, data_sha256 = recorded(given)
    width, height = (None, None) if film.is_sound else made.view.frame
    return {
        "page": page,
        "file": output,
        "byte_size": os.path.getsize(made.path),
        "width": width,
        "height": height,
        "scale": made.view.scale,
        "frame_rate": str(made.view.fps),
        "first_frame": made.slices[0].first,
        "frames": made.frames,
        "duration": round(made.seconds, 6),
        "sound": made.sound,
        "loudness": made.loudness,
        "unchanged_frames": sum(one.unchanged for one in made.slices),
        "data": data,
        "data_sha256": data_sha256,
        "seconds": round(seconds, 3),
        "slices": [
            {"first_frame": one.first, "frames": one.frames, "seconds": one.seconds}
            for one in made.slices
        ],
        **{kind: told[kind] for kind in _NOTES},
    }


def line_of(facts: Mapping[str, Any]) -> str:
    """The same in one line for people."""
    size = f"{facts['width']}×{facts['height']}"
    if facts["width"] is None:
        size = "sound" if facts["sound"] else "silence, as the page plays nothing"
    kib = f"{facts['byte_size'] / 1024:,.1f} KiB"
    took = f"rendered in {facts['seconds']:.1f} s"
    if not facts["duration"]:
        return f"{facts['file']}: {kib}, {size}, {took}\n"
    sound = ", with sound" if facts["sound"] and facts["width"] is not None else ""
    many = "frame" if facts["frames"] == 1 else "frames"
    loudness = _loudness(facts["loudness"])
    return (
        f"{facts['file']}: {kib}, {facts['duration']:.3f} s, {size}, {facts['frames']:,} {many}"
        f"{sound}{loudness}, {took}\n"
    )


def _loudness(told: dict[str, Any] | None) -> str:
    """What was done about the loudness; nothing where none was asked for, or there is none."""
    if told is None or told["integrated"] is None:
        return ""
    return f", {told['integrated'] + told['gain']:.1f} LUFS by {told['gain']:+.1f} dB"
