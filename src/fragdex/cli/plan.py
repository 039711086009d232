"""`fragdex plan`: what a seek would read, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from fragdex.cli import options
from fragdex.cli.answers import answer
from fragdex.cli.output import json_line

__all__ = ["plan"]


@options.opens("init", "exact", "strict", "ignore_mtime", "follow", "max_bytes", "max_requests")
def plan(
    files: options.Files,
    time: options.Time,
    tracks: options.Tracks = None,
    json: options.Json = False,
    output: options.Output = None,
    jobs: options.Jobs = 1,
    *,
    opening: dict[str, Any],
) -> int:
    """Show what a seek to TIME would read: requests, bytes, samples to decode, and why.

    Examples:
      fragdex plan movie.mp4 1:02:03.5
      fragdex plan https://example.org/movie.mp4 60 --max-requests 4 --json
    """
    at = options.parse_time(time)
    planning = partial(_plan, time=at, tracks=tracks, json=json, opening=opening)
    return answer("plan", planning, files, jobs=jobs, output=output, titles=not json)


def _plan(
    name: str, time: Fraction | float, tracks: list[int] | None, json: bool, opening: dict[str, Any]
) -> tuple[str, Sequence[str]]:
    from fragdex.cli.opening import notes, open_any
    from fragdex.cli.seek import edges, hit_value
    from fragdex.errors import NoSyncSample
    from fragdex.seeking.show import byte_count, counted

    index = open_any(name, **opening)
    told = notes(index, findings=False)
    if math.isinf(time):
        time = edges(index, tracks)[1] or 0.0
    made = index.plan(time, tracks=tracks)
    if not made.hits:
        raise NoSyncSample(f"{name} has no track to seek in")
    if json:
        by_place = {(t.id, n): t for n, t in enumerate(index.tracks)}
        tracks_by_id = {track_id: t for (track_id, _), t in by_place.items()}
        value = {
            "file": name,
            "time": float(time),
            "index": {
                "method": index.how.method,
                "exact": index.how.exact,
                "reason": index.how.reason,
                "requests": index.how.requests,
                "bytes": index.how.bytes_read,
            },
            "requests": made.requests,
            "bytes": made.bytes,
            "init": [{"start": r.start, "stop": r.stop} for r in made.init],
            "reads": [{"start": r.start, "stop": r.stop} for r in made.reads],
            "samples": {str(track): count for track, count in made.samples.items()},
            "hits": [hit_value(tracks_by_id[hit.track], hit) for hit in made.hits],
            "why": list(made.why),
        }
        return json_line(value), told
    how = index.how
    lines = [
        f"index: from {how.method}, {byte_count(how.bytes_read)} read in "
        f"{counted(how.requests, 'request')}" + (f"; {how.reason}" if how.reason else "")
    ]
    if made.init:
        size = sum(part.size for part in made.init)
        lines.append(f"once: {byte_count(size)} initialization segment")
        lines += [f"  {part.header}" for part in made.init]
    lines.append(f"seek: {byte_count(made.bytes)} in {counted(made.requests, 'request')}")
    lines += [f"  {part.header}" for part in made.reads]
    lines.append("why:")
    lines += [f"  {sentence}" for sentence in made.why]
    return "\n".join(lines) + "\n", told
