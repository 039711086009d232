"""`fragdex info`: what is in a file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from fragdex.cli import options
from fragdex.cli.inputs import Work, expand
from fragdex.cli.output import emit, json_line

__all__ = ["info"]


def info(
    files: options.Files,
    init: options.Init = None,
    exact: options.Exact = False,
    strict: options.Strict = False,
    json: options.Json = False,
    output: options.Output = None,
    jobs: options.Jobs = 1,
    max_bytes: options.MaxBytes = None,
    max_requests: options.MaxRequests = None,
) -> int:
    """Show what is in files: tracks, codecs, times, fragments, and what is odd about them.

    Examples:
      fragdex info movie.mp4
      fragdex info 'recordings/**/*.mp4' --json --jobs 4
    """
    opening = {
        "init": init,
        "exact": exact,
        "strict": strict,
        "max_bytes": max_bytes,
        "max_requests": max_requests,
    }
    work = Work("info")
    telling = partial(_info, json=json, opening=opening)
    emit((text for _, text in work.each(telling, expand(files), jobs)), output)
    return work.code


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
