"""`fragdex loudness`: how loud a track is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from fragdex.cli import options
from fragdex.cli.inputs import Work, expand
from fragdex.cli.output import emit, json_line

__all__ = ["loudness"]


@options.opens("init", "strict", "period", "ignore_mtime", "follow", "max_bytes", "max_requests")
def loudness(
    files: options.Files,
    output: options.Output = None,
    track: options.Track = None,
    json: options.Json = False,
    jobs: options.Jobs = 1,
    *,
    opening: dict[str, Any],
) -> int:
    """Measure how loud a track is (EBU R 128).

    Prints the integrated loudness (LUFS), the loudness range (LU) and the true peak (dBTP). Needs
    PyAV (pip install 'fragdex[media]').

    Examples:
      fragdex loudness movie.mp4
      fragdex loudness 'podcast/*.m4a' --json --jobs 4
    """
    work = Work("loudness")
    measuring = partial(_measure, opening=opening, track=track)

    def lines() -> Iterator[str]:
        for name, found in work.each(measuring, expand(files), jobs):
            parts = (
                _part(found["integrated"], "LUFS"),
                f"range {_part(found['range'], 'LU')}",
                f"true peak {_part(found['true_peak'], 'dBTP')}",
            )
            line = f"{name}: {', '.join(parts)}\n"
            yield json_line({"file": name, **found}) if json else line

    emit(lines(), output)
    return work.code


def _part(value: float | None, unit: str) -> str:
    return "silent" if value is None else f"{value:.1f} {unit}"


def _measure(
    name: str, opening: dict[str, Any], track: int | None
) -> tuple[dict[str, Any], Sequence[str]]:
    from dataclasses import asdict

    from fragdex import loudness
    from fragdex.cli.opening import notes, opened_media

    with opened_media(name, opening) as (index, source, init):
        found = loudness(index, source, track=track, init=init)
        return asdict(found), notes(index, findings=False)
