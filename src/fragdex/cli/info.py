"""`fragdex info`: what is in a file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from fragdex.cli import options
from fragdex.cli.answers import answer
from fragdex.cli.output import json_line

__all__ = ["info"]


@options.opens("init", "exact", "strict", "max_bytes", "max_requests")
def info(
    files: options.Files,
    json: options.Json = False,
    output: options.Output = None,
    jobs: options.Jobs = 1,
    *,
    opening: dict[str, Any],
) -> int:
    """Show what is in files: tracks, codecs, times, fragments, and what is odd about them.

    Examples:
      fragdex info movie.mp4
      fragdex info 'recordings/**/*.mp4' --json --jobs 4
    """
    telling = partial(_info, json=json, opening=opening)
    return answer("info", telling, files, jobs=jobs, output=output)


def _info(name: str, json: bool, opening: dict[str, Any]) -> tuple[str, Sequence[str]]:
    from fragdex.cli.opening import notes, open_any

    index = open_any(name, **opening)
    # The findings are the answer here, and not a word beside it.
    told = notes(index, findings=False)
    text = json_line({"file": name, **_value(index)}) if json else f"{index!r}\n"
    return text, told


def _value(index: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "source": asdict(index.source),
        "how": asdict(index.how),
        "duration": index.duration,
        "complete": index.complete,
        "resume_offset": index.resume_offset,
        "periods": [_period_value(period) for period in index.periods],
        "findings": [asdict(finding) for finding in index.findings],
    }


def _period_value(period: Any) -> dict[str, Any]:
    return {
        "number": period.number,
        "init": [{"start": part.start, "stop": part.stop} for part in period.init],
        "timescale": period.movie.timescale,
        "fragmented": period.movie.fragmented,
        "tracks": [_track_value(track) for track in period.tracks],
    }


def _track_value(track: Any) -> dict[str, Any]:
    from dataclasses import asdict

    value = asdict(track.info)
    value |= {
        "shift": float(track.shift),
        "exact": track.exact,
        "fragment_count": len(track.fragments),
        "sample_count": track.sample_count,
        "sync_count": int(track.sync.count.sum()),
        "start": None if track.start is None else track.start.seconds,
        "end": None if track.end is None else track.end.seconds,
    }
    return value
