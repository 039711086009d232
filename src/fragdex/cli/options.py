"""Arguments and options that several commands share: one name, one meaning, one help text."""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

__all__ = ["Form", "opens", "parse_time", "placed"]


class Form(StrEnum):
    """The short names of the forms an index can be written in."""

    # The formats' own table would import numpy for every --help; a test holds the two equal.
    FIDX = "fidx"
    JSON = "json"
    SIDX = "sidx"
    MFRA = "mfra"
    HLS = "hls"
    DASH = "dash"
    ARROW = "arrow"
    PARQUET = "parquet"
    TORCHCODEC = "torchcodec"
    CSV = "csv"


_CLOCK = re.compile(r"(-?)(?:(\d+):)?(?:(\d+):)?(\d+(?:\.\d*)?|\.\d+)")


def parse_time(text: str) -> float:
    """Seconds from `90`, `90.5`, `1:30.5` or `1:02:03.5`; `end` is behind the last sample.

    Raises:
        typer.BadParameter: it is none of these.

    >>> parse_time("1:02:03.5"), parse_time("90"), parse_time("-2.5")
    (3723.5, 90.0, -2.5)
    """
    if text == "end":
        return math.inf
    match = _CLOCK.fullmatch(text)
    if match is None:
        raise typer.BadParameter(f"{text!r} is no time: give seconds, or hours:minutes:seconds")
    sign, first, second, seconds = match.groups()
    hours, minutes = (first, second) if second is not None else (None, first)
    value = int(hours or 0) * 3600 + int(minutes or 0) * 60 + float(seconds)
    return -value if sign else value


def _track(value: list[int] | None) -> list[int] | None:
    return value or None


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Media files, .fidx indexes, URLs (https, s3 and others) or globs; quoted globs too.",
        show_default=False,
    ),
]
Time = Annotated[
    str,
    typer.Argument(metavar="TIME", help="Seconds, or 1:02:03.5.", show_default=False),
]
Tracks = Annotated[
    list[int] | None,
    typer.Option(
        "--track",
        "-t",
        metavar="ID",
        callback=_track,
        help="Only this track (track_ID); may be repeated. Default: all.",
        show_default=False,
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON, one document a line for each input.")
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        help="Write there instead; - is stdout.",
        show_default="stdout",
    ),
]
Jobs = Annotated[
    int,
    typer.Option("--jobs", "-j", min=1, metavar="N", help="Work on N inputs at a time."),
]
MaxBytes = Annotated[
    int | None,
    typer.Option(
        "--max-bytes",
        min=0,
        metavar="N",
        help="Read at most N bytes of an input; stop with an error before more.",
        show_default=False,
    ),
]
MaxRequests = Annotated[
    int | None,
    typer.Option(
        "--max-requests",
        min=0,
        metavar="N",
        help="Make at most N requests for an input; stop with an error before more.",
        show_default=False,
    ),
]
Exact = Annotated[
    bool,
    typer.Option("--exact", help="Read every fragment's header, whatever index is in the file."),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Take sample positions as declared, also where they are stale."),
]
Init = Annotated[
    str | None,
    typer.Option(
        "--init",
        metavar="PATH",
        help="The initialization segment (ftyp and moov) of segments that have none.",
        show_default=False,
    ),
]


def placed(told: str) -> Any:
    """The -o of a command that writes a file for each input; what it can be is told in its help."""
    return typer.Option("--output", "-o", metavar="PATH", help=told, show_default=False)


_OPENING: dict[str, tuple[Any, Any]] = {
    "init": (Init, None),
    "exact": (Exact, False),
    "strict": (Strict, False),
    "max_bytes": (MaxBytes, None),
    "max_requests": (MaxRequests, None),
}


def opens(*names: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command these options on how its inputs are opened, behind its own.

    The command has a parameter `opening` instead of them: a dict of what was given, by name.
    """

    def with_options(command: Callable[..., int]) -> Callable[..., int]:
        own = inspect.signature(command, eval_str=True)
        parameters = [p for p in own.parameters.values() if p.name != "opening"]
        parameters += [
            inspect.Parameter(
                name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind
            )
            for name, (kind, default) in _OPENING.items()
            if name in names
        ]

        @functools.wraps(command)
        def run(**given: Any) -> int:
            opening = {name: given.pop(name) for name in names}
            return command(**given, opening=opening)

        # typer reads a command's options off these two
        run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": int}
        return run

    return with_options
