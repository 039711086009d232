"""`fragdex view`: a file in another arrangement, without re-encoding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, Final

import typer

from fragdex.cli import options
from fragdex.cli.inputs import Work, expand
from fragdex.cli.output import emit, json_line, say
from fragdex.cli.output_paths import places

__all__ = ["Kind", "view"]


class Kind(StrEnum):
    """The kinds of views."""

    # The library's own list would import numpy for every --help; a test holds the two equal.
    FASTSTART = "faststart"
    FRAGMENTED = "fragmented"
    CLIP = "clip"
    TRACKS = "tracks"
    INIT = "init"
    SEGMENT = "segment"


_CUT: Final = ("fragmented", "init", "segment")
_APPLIES: Final = {
    "--start": ("clip",),
    "--stop": ("clip",),
    "--inexact": ("clip",),
    "--track": ("fragmented", "clip", "tracks", "init", "segment"),
    "--seconds": _CUT,
    "--number": ("segment",),
}


@options.opens("strict", "ignore_mtime", "max_bytes", "max_requests")
def view(
    files: options.Files,
    kind: Annotated[Kind, typer.Option("--kind", "-k", help="What to make.")] = Kind.FRAGMENTED,
    output: Annotated[
        str | None,
        options.placed("Write there: a file, a folder (it gets FILE's name), or - for stdout."),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--start", metavar="TIME", help="Where the clip starts.", show_default="0, the start"
        ),
    ] = None,
    stop: Annotated[
        str | None,
        typer.Option(
            "--stop", metavar="TIME", help="Where the clip ends (exclusive).", show_default="end"
        ),
    ] = None,
    inexact: Annotated[
        bool,
        typer.Option(
            "--inexact",
            help="Begin the clip at the sync sample at or before its start, in fragments, for"
            " readers that ignore edit lists.",
        ),
    ] = False,
    tracks: options.Tracks = None,
    seconds: options.Seconds = None,
    number: Annotated[
        int | None,
        typer.Option(
            "--number", "-n", min=0, metavar="N", help="Number of the segment.", show_default="0"
        ),
    ] = None,
    json: options.Json = False,
    jobs: options.Jobs = 1,
    *,
    opening: dict[str, Any],
) -> int:
    """Write FILE in another arrangement, without re-encoding.

    `fragmented`: in fragments that begin with key frames, with a sidx. `faststart`: with its moov
    in front of the media. `clip`: a span of it. `tracks`: some of its tracks. `init` and `segment`:
    the initialization segment and one media segment of `fragmented`. fragdex.view gives the same
    in Python without writing a file.

    Examples:
      fragdex view movie.mp4 -o streamable.mp4
      fragdex view movie.mp4 --kind faststart -o web.mp4
      fragdex view movie.mp4 --kind clip --start 60 --stop 90 -o clip.mp4
      fragdex view movie.mp4 --kind segment --number 3 --seconds 2 --track 1 -o 3.m4s
    """
    given = {
        "--start": start is not None,
        "--stop": stop is not None,
        "--inexact": inexact,
        "--track": tracks is not None,
        "--seconds": seconds is not None,
        "--number": number is not None,
    }
    for option, kinds in _APPLIES.items():
        if given[option] and kind.value not in kinds:
            raise typer.BadParameter(f"{option} does not apply to {kind.value}")
    first = Fraction(0) if start is None else options.parse_time(start)
    last = math.inf if stop is None else options.parse_time(stop)
    if not first < last:
        raise typer.BadParameter(f"--stop ({stop}) must be after --start ({start or 0})")
    if output is None:
        raise typer.BadParameter("an output is needed: -o made.mp4")
    names = expand(files)
    suffix = ".m4s" if kind is Kind.SEGMENT else ".mp4"
    asked: dict[str, Any] = {"tracks": tracks, "number": number or 0}
    asked |= {"start": first, "stop": last, "exact": not inexact}
    asked["seconds"] = options.parse_seconds(seconds)
    making = partial(
        _view,
        targets=places(names, output, lambda name: suffix, "views"),
        kind=kind.value,
        asked=asked,
        opening=opening,
    )
    work = Work("view")
    for name, made in work.each(making, names, 1 if output == "-" else jobs):
        text = json_line({"file": name, **made}) if json else _line(name, made)
        # The view itself may be on stdout: then words go to stderr.
        say(text, err=output == "-")
    return work.code


def _view(
    name: str, targets: dict[str, str], kind: Any, asked: dict[str, Any], opening: dict[str, Any]
) -> tuple[dict[str, Any], Sequence[str]]:
    import fragdex
    from fragdex.cli.copying import bytes_of_view
    from fragdex.cli.opening import exact_again, notes, opened_media
    from fragdex.errors import FragdexError, InexactIndex

    with opened_media(name, opening) as (index, source, _):

        def describe(index: Any) -> fragdex.View:
            return fragdex.view(index, kind, source=source, **asked)

        try:
            try:
                made = describe(index)
            except InexactIndex:
                # A saved index without its samples, or one from a sidx or mfra.
                span = (asked["start"], asked["stop"], asked["tracks"]) if kind == "clip" else None
                index = exact_again(index, source, opening, span)
                made = describe(index)
        except IndexError as error:
            raise FragdexError(str(error)) from error
        emit(bytes_of_view(made, source), targets[name])
    return {
        "view": targets[name],
        "kind": kind,
        "media_type": made.media_type,
        "size": made.size,
        "etag": made.etag,
    }, notes(index, findings=False)


def _line(name: str, made: dict[str, Any]) -> str:
    from fragdex.seeking.show import byte_count

    return (
        f"{made['view']}: {made['kind']} of {name}, {made['media_type']}, "
        f"{byte_count(made['size'])}\n"
    )
