"""`fragdex remove`: a file without some spans of time, and with no sample of them in its bytes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from math import inf
from typing import Annotated, Any

import typer

from fragdex.cli import options
from fragdex.cli.inputs import InputWork, expand, notes, places
from fragdex.cli.output import json_line, say
from fragdex.cli.view import cut_of


@options.opens("init", "strict", "period", "ignore_mtime", "follow", "max_bytes", "max_requests")
def remove(
    file: Annotated[str, typer.Argument(metavar="FILE", show_default=False)],
    times: Annotated[
        list[str],
        typer.Argument(
            metavar="T0 T1",
            help="Where each span starts, and where it ends (exclusive), or: end.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str | None, options.placed("Write there: a file, a folder, or - for stdout.")
    ] = None,
    tracks: options.Tracks = None,
    json: options.Json = False,
    *,
    opening: dict[str, Any],
) -> int:
    """Take spans of time out of a file, without re-encoding: no sample of them is left in it.

    What cannot be decoded without them goes, too: the pictures between the end of a span and the
    next sync sample, and those before a span that need pictures of it, with the sound of the same
    moments. stderr says from when to when. All that stays is copied bit for bit.

    Examples:
      fragdex remove movie.mp4 1:00 2:00 -o shorter.mp4
      fragdex remove movie.mp4 0 12.5 1:00:00 end -o middle.mp4
    """
    if output is None:
        raise typer.BadParameter("an output is needed: -o shorter.mp4")
    if len(times) % 2:
        raise typer.BadParameter(f"each span has two times: T0 T1, and {times[-1]} has no end")
    edges = list(map(options.parse_time, times))
    spans = [*zip(edges[::2], edges[1::2], strict=True)]
    for (low, high), (start, stop) in zip(spans, list(pairwise(times))[::2], strict=True):
        if not low < high:
            raise typer.BadParameter(f"T1 ({stop}) must be after T0 ({start})")
    names = expand([file])
    work = InputWork("remove")
    targets = places(names, output, lambda name: ".mp4", "films")
    removing = partial(_remove, targets=targets, spans=spans, tracks=tracks, opening=opening)
    for name, result in work.each(removing, names, 1):
        text = json_line({"file": name, **result}) if json else _line(name, result)
        say(text, err=output == "-")
    return work.code


def _remove(
    name: str,
    targets: dict[str, str],
    spans: Sequence[tuple[Any, Any]],
    tracks: list[int] | None,
    opening: dict[str, Any],
) -> tuple[dict[str, Any], Sequence[str]]:
    from fragdex.muxing.copies import ClipRequest

    wanted = ClipRequest(-inf, inf, tracks, removed=tuple(spans))
    with cut_of(name, wanted, targets[name], opening) as (index, view, clip):
        pass
    kept = [[float(span.start), float(span.stop)] for span in clip.kept]
    return {
        "film": targets[name],
        "kept": kept,
        "seconds": sum(stop - start for start, stop in kept),
        "tracks": list(clip.tracks),
        "size": view.size,
        "findings": list(view.findings),
    }, [*notes(index, findings=False), *view.findings]


def _line(name: str, result: dict[str, Any]) -> str:
    from fragdex.seeking.show import byte_count, clock

    spans = ", ".join(f"{clock(start)} – {clock(stop)}" for start, stop in result["kept"])
    return f"{result['film']}: {spans} of {name}, {byte_count(result['size'])}\n"
