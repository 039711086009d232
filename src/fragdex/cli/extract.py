"""`fragdex extract`: a playable clip without re-encoding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Annotated, Any

import typer

from fragdex.cli import options
from fragdex.cli.inputs import Work, expand
from fragdex.cli.output import emit, json_line, say
from fragdex.cli.output_paths import places

__all__ = ["extract"]


@options.opens("init", "strict", "period", "ignore_mtime", "follow", "max_bytes", "max_requests")
def extract(
    files: options.Files,
    start: Annotated[
        str, typer.Argument(metavar="T0", help="Where the clip starts.", show_default=False)
    ],
    stop: Annotated[
        str,
        typer.Argument(
            metavar="T1", help="Where it ends (exclusive), or: end.", show_default=False
        ),
    ],
    output: Annotated[
        str | None,
        options.placed(
            "Write there: a file, a folder (the clip gets FILE's name), or - for stdout."
        ),
    ] = None,
    tracks: options.Tracks = None,
    keep_times: Annotated[
        bool,
        typer.Option(
            "--keep-times",
            help="Keep the source's times, in fragments, instead of a clip that starts at 0.",
        ),
    ] = False,
    fragmented: Annotated[
        bool,
        typer.Option(
            "--fragmented", help="Make a fragmented file; it starts at a sync sample before T0."
        ),
    ] = False,
    json: options.Json = False,
    jobs: options.Jobs = 1,
    *,
    opening: dict[str, Any],
) -> int:
    """Cut a playable clip out of a file, without re-encoding.

    A clip shows exactly T0 to T1: what a decoder needs before T0 is included, and hidden by an
    edit list. With --fragmented, and for encrypted files, whole fragments are
    copied, or samples put into fragments; such a clip starts at the sync sample at or before T0.
    The actual span of the clip is printed.

    Examples:
      fragdex extract movie.mp4 60 90 -o clip.mp4
      fragdex extract 'episodes/*.mp4' 0 1:30 -o openings/ --jobs 4
    """
    first, last = options.parse_time(start), options.parse_time(stop)
    if not first < last:
        raise typer.BadParameter(f"T1 ({stop}) must be after T0 ({start})")
    if output is None:
        raise typer.BadParameter("an output is needed: -o clip.mp4")
    names = expand(files)
    targets = places(names, output, lambda name: ".mp4", "clips")
    work = Work("extract")
    cutting = partial(
        _extract,
        targets=targets,
        start=first,
        stop=last,
        tracks=tracks,
        keep_times=keep_times,
        fragmented=fragmented,
        opening=opening,
    )
    for name, made in work.each(cutting, names, 1 if output == "-" else jobs):
        text = json_line({"file": name, **made}) if json else _line(name, made)
        # The clip itself may be on stdout: then words go to stderr.
        say(text, err=output == "-")
    return work.code


def _extract(
    name: str,
    targets: dict[str, str],
    start: Fraction | float,
    stop: Fraction | float,
    tracks: list[int] | None,
    keep_times: bool,
    fragmented: bool,
    opening: dict[str, Any],
) -> tuple[dict[str, Any], Sequence[str]]:
    from fragdex.cli.copying import bytes_of_view
    from fragdex.cli.opening import exact_again, notes, opened_media, saved_form
    from fragdex.errors import InexactIndex
    from fragdex.seeking.origin import SourceInfo
    from fragdex.views.copies import ClipRequest, clip_view

    with opened_media(name, opening) as (index, source, init):
        cut = ClipRequest(start, stop, tracks, fragmented, keep_times, init)
        try:
            view, made = clip_view(index, source, cut)
        except InexactIndex:
            # A saved index without its samples, or one from a sidx or mfra.
            index = exact_again(index, source, opening, (start, stop, tracks))
            view, made = clip_view(index, source, cut)
        # A recording may have grown since it was indexed from this very source.
        known = None if saved_form(name) else [SourceInfo(name)]
        emit(bytes_of_view(view, source, known), targets[name])
    return {
        "clip": targets[name],
        "asked": [float(start), None if math.isinf(stop) else float(stop)],
        "start": float(made.start),
        "stop": float(made.stop),
        "tracks": list(made.tracks),
        "exact": made.exact,
        "whole_fragments": made.whole_fragments,
        "size": view.size,
        "findings": list(view.findings),
    }, [*notes(index, findings=False), *view.findings]


def _line(name: str, made: dict[str, Any]) -> str:
    from fragdex.seeking.show import byte_count, clock

    asked = [made["asked"][0], math.inf if made["asked"][1] is None else made["asked"][1]]
    words = " – ".join("end" if math.isinf(at) else clock(at) for at in asked)
    what = "whole fragments" if made["whole_fragments"] else "samples, in new fragments"
    what = "exactly" if made["exact"] else what
    return (
        f"{made['clip']}: {clock(made['start'])} – {clock(made['stop'])} of {name} "
        f"(asked: {words}), {what}, {byte_count(made['size'])}\n"
    )
