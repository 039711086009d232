"""`fragdex view`: a file in another arrangement, without re-encoding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
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
    TIMELINE = "timeline"


_CUT: Final = ("fragmented", "init", "segment", "timeline")
_APPLIES: Final = {
    "--start": ("clip",),
    "--stop": ("clip",),
    "--inexact": ("clip",),
    "--track": ("clip", "tracks", *_CUT),
    "--seconds": _CUT,
    "--number": ("segment",),
    "--starts": ("timeline",),
}


@options.opens("strict", "period", "ignore_mtime", "follow", "max_bytes", "max_requests")
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
    starts: Annotated[
        str | None,
        typer.Option(
            "--starts",
            metavar="TIMES",
            help="Where files begin on the timeline, with commas between them; source: at their"
            " own times, so that gaps stay.",
            show_default="each behind the one before",
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
    the initialization segment and one media segment of `fragmented`. `timeline`: all FILEs one
    behind the other. fragdex.view gives the same in Python without writing a file.

    Examples:
      fragdex view movie.mp4 -o streamable.mp4
      fragdex view movie.mp4 --kind faststart -o web.mp4
      fragdex view movie.mp4 --kind clip --start 60 --stop 90 -o clip.mp4
      fragdex view movie.mp4 --kind segment --number 3 --seconds 2 --track 1 -o 3.m4s
      fragdex view monday/*.mp4 --kind timeline -o monday.mp4
    """
    given = {
        "--start": start is not None,
        "--stop": stop is not None,
        "--inexact": inexact,
        "--track": tracks is not None,
        "--seconds": seconds is not None,
        "--number": number is not None,
        "--starts": starts is not None,
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
    names = expand(files, repeated=kind is Kind.TIMELINE)
    together = names if kind is Kind.TIMELINE else None
    suffix = ".m4s" if kind is Kind.SEGMENT else ".mp4"
    asked: dict[str, Any] = {"tracks": tracks, "number": number or 0}
    asked |= {"start": first, "stop": last, "exact": not inexact}
    asked["seconds"] = options.parse_seconds(seconds)
    asked["starts"] = _parse_starts(starts, len(names))
    outputs = places(names[:1] if together else names, output, lambda name: suffix, "views")
    if outputs.get(names[0]) in names[1:] and together:
        raise typer.BadParameter(f"{outputs[names[0]]} is one of the inputs: give another -o")
    making = partial(
        _view, outputs=outputs, together=together, kind=kind.value, asked=asked, opening=opening
    )
    work = Work("view")
    for name, made in work.each(making, list(outputs), 1 if output == "-" else jobs):
        what = {"files": together} if together else {"file": name}
        several = f"{name} and {len(names) - 1} more" if together and names[1:] else name
        text = json_line({**what, **made}) if json else _line(several, made)
        # The view itself may be on stdout: then words go to stderr.
        say(text, err=output == "-")
    return work.code


def _parse_starts(text: str | None, count: int) -> Any:
    if text is None or text == "source":
        return text
    found = [options.parse_time(one) for one in text.split(",")]
    if len(found) != count or math.inf in found:
        raise typer.BadParameter(f"--starts has {len(found)} times for {count} files")
    return found


def _view(
    name: str,
    outputs: dict[str, str],
    together: Sequence[str] | None,
    kind: Any,
    asked: dict[str, Any],
    opening: dict[str, Any],
) -> tuple[dict[str, Any], Sequence[str]]:
    import fragdex
    from fragdex.cli.copying import bytes_of_view
    from fragdex.cli.opening import exact_again, notes, opened_media
    from fragdex.errors import FragdexError, InexactIndex

    indexes: list[Any] = []
    sources: list[Any] = []
    told: list[str] = []

    def describe() -> fragdex.View:
        several = (indexes, sources) if together else (indexes[0], sources[0])
        return fragdex.view(several[0], kind, source=several[1], **asked)

    with ExitStack() as stack:
        for one in together or [name]:
            with ExitStack() as here:
                index, source, _ = here.enter_context(opened_media(one, opening))
                indexes.append(index)
                told += [
                    f"{one}: {note}" if together else note for note in notes(index, findings=False)
                ]
                # a process cannot have the files of a whole day open
                sources.append(source.name if together and not source.remote else source)
                if sources[-1] is source:
                    stack.push(here.pop_all())
        try:
            try:
                made = describe()
            except InexactIndex:
                # A saved index without its samples, or one from a sidx or mfra.
                span = (asked["start"], asked["stop"], asked["tracks"]) if kind == "clip" else None
                both = zip(indexes, sources, strict=True)
                indexes = [exact_again(index, source, opening, span) for index, source in both]
                made = describe()
        except IndexError as error:
            raise FragdexError(str(error)) from error
        emit(bytes_of_view(made, sources), outputs[name])
    return {
        "view": outputs[name],
        "kind": kind,
        "media_type": made.media_type,
        "size": made.size,
        "etag": made.etag,
        "findings": list(made.findings),
    }, [*told, *made.findings]


def _line(name: str, made: dict[str, Any]) -> str:
    from fragdex.seeking.show import byte_count

    return (
        f"{made['view']}: {made['kind']} of {name}, {made['media_type']}, "
        f"{byte_count(made['size'])}\n"
    )
