"""`fragdex remove`: a file without spans of time, or a set without episodes; no sample is left."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from math import inf
from typing import Annotated, Any, Final

import typer

from fragdex.cli import options
from fragdex.cli.inputs import InputWork, expand, notes, places
from fragdex.cli.output import json_line, say
from fragdex.cli.view import cut_of

_MOST_EPISODES: Final = 1 << 20
_OF_SETS: Final = ("follow",)
"""Options of inputs that apply to a set."""


@options.opens("init", "strict", "period", "ignore_mtime", "follow", "max_bytes", "max_requests")
def remove(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file, or a set.")],
    times: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="T0 T1", help="Where each span starts, and where it ends (exclusive), or: end."
        ),
    ] = None,
    output: Annotated[
        str | None, options.placed("Write there: a file, a folder, or - for stdout.")
    ] = None,
    tracks: options.Tracks = None,
    smart: options.Smart = False,
    episodes: Annotated[
        str | None,
        typer.Option(
            "--episodes",
            metavar="NUMBERS",
            help="Of a set in LeRobot's form: the episodes to take out, such as 3,7-9.",
        ),
    ] = None,
    keep_needed: Annotated[
        bool,
        typer.Option(
            "--keep-needed",
            help="With --episodes: keep the pictures of removed ones that others need; stderr"
            " names them.",
        ),
    ] = False,
    json: options.Json = False,
    *,
    opening: dict[str, Any],
) -> int:
    """Take spans out of a file, or episodes out of a set: no sample of them is left.

    What cannot be decoded without them goes, too: the pictures between the end of a span and the
    next sync sample, and those before a span that need pictures of it, with the sound of the same
    moments. stderr says from when to when. All that stays is copied bit for bit. With --smart, only
    the spans go, and pictures that need some of them are re-encoded.

    With --episodes, FILE is the folder, URL or bucket of a set in LeRobot's form (version 3), and a
    new folder gets the other episodes: videos, rows, tasks and statistics. If an episode that stays
    needs pictures of one that goes, nothing is written, unless --smart or --keep-needed is given.

    Examples:
      fragdex remove movie.mp4 1:00 2:00 -o shorter.mp4
      fragdex remove movie.mp4 0 12.5 1:00:00 end -o middle.mp4
      fragdex remove movie.mp4 1:00 2:00 --smart -o shorter.mp4
      fragdex remove pusht/ --episodes 3,7-9 -o pusht-without/
    """
    if output is None:
        raise typer.BadParameter("an output is needed: -o shorter.mp4")
    if episodes is not None:
        if times or tracks:
            raise typer.BadParameter("--episodes takes whole episodes out: no times, no --track")
        others = [name for name, value in opening.items() if value and name not in _OF_SETS]
        if others:
            raise typer.BadParameter(f"--{others[0].replace('_', '-')} does not apply to a set")
        work = InputWork("remove")
        numbers = _numbers(episodes)
        how: Any = {"smart": smart, "keep_needed": keep_needed, "opening": opening}
        taking = partial(_without_episodes, output, numbers, **how)
        for name, result in work.each(taking, [file], 1):
            say(json_line({"file": name, **result}) if json else _set_line(name, result))
        return work.code
    if keep_needed:
        raise typer.BadParameter("--keep-needed goes with --episodes")
    if not times:
        raise typer.BadParameter("Missing argument 'T0 T1'; or --episodes NUMBERS")
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
    removing = partial(_remove, targets, spans, tracks, smart=smart, opening=opening)
    for name, result in work.each(removing, names, 1):
        text = json_line({"file": name, **result}) if json else _line(name, result)
        say(text, err=output == "-")
    return work.code


def _remove(
    targets: dict[str, str],
    spans: Sequence[tuple[Any, Any]],
    tracks: list[int] | None,
    name: str,
    *,
    smart: bool,
    opening: dict[str, Any],
) -> tuple[dict[str, Any], Sequence[str]]:
    from fragdex.muxing.copies import ClipRequest

    wanted = ClipRequest(-inf, inf, tracks, removed=tuple(spans), smart=smart)
    with cut_of(name, wanted, targets[name], opening) as (index, view, clip):
        pass
    kept = [[float(span.start), float(span.stop)] for span in clip.kept]
    return {
        "film": targets[name],
        "kept": kept,
        "seconds": sum(stop - start for start, stop in kept),
        "tracks": list(clip.tracks),
        "encoded": clip.encoded,
        "size": view.size,
        "findings": list(view.findings),
    }, [*notes(index, findings=False), *view.findings]


def _line(name: str, result: dict[str, Any]) -> str:
    from fragdex.seeking.show import byte_count, clock

    spans = ", ".join(f"{clock(start)} – {clock(stop)}" for start, stop in result["kept"])
    size = byte_count(result["size"])
    return f"{result['film']}: {spans} of {name}{_encoded(result)}, {size}\n"


def _encoded(result: dict[str, Any]) -> str:
    return f", {result['encoded']} pictures re-encoded" if result["encoded"] else ""


def _numbers(text: str) -> list[int]:
    """Numbers from a text such as `3,7-9`."""
    numbers: list[int] = []
    for part in text.split(","):
        span = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part.strip())
        if span is None or int(span[1]) > int(span[2] or span[1]):
            raise typer.BadParameter(f"episodes are numbers such as 3,7-9, not {text}")
        if int(span[2] or 0) - int(span[1]) > _MOST_EPISODES:
            raise typer.BadParameter(f"{part} are more episodes than a set has")
        numbers += range(int(span[1]), int(span[2] or span[1]) + 1)
    return numbers


def _without_episodes(
    output: str,
    numbers: Sequence[int],
    name: str,
    *,
    smart: bool,
    keep_needed: bool,
    opening: dict[str, Any],
) -> tuple[dict[str, Any], Sequence[str]]:
    from fragdex.bridges.lerobot_episodes import remove_episodes

    opened = {one: opening[one] for one in _OF_SETS if opening[one] is not None}
    with options.usage():
        made = remove_episodes(
            name, numbers, output, smart=smart, keep_needed=keep_needed, **opened
        )
    return asdict(made), made.findings


def _set_line(name: str, result: dict[str, Any]) -> str:
    return (
        f"{result['output']}: {len(result['episodes'])} episodes of {name}, "
        f"{result['frames']:,} frames, {result['videos']} videos{_encoded(result)}\n"
    )
