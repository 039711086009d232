"""Arguments and options that several commands share: one name, one meaning, one help; extras."""

from __future__ import annotations

import functools
import gc
import inspect
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from fractions import Fraction
from importlib.util import find_spec
from itertools import chain
from typing import Annotated, Any, Final

import typer

from fragdex.errors import MissingExtra


def parse_time(text: str) -> Fraction | float:
    """Seconds from a text as `fragdex.seeking.times` takes them; `end` is infinity.

    Raises:
        typer.BadParameter: it is neither.

    >>> parse_time("1:02:03.5"), parse_time("90s"), parse_time("end")
    (Fraction(7447, 2), Fraction(90, 1), inf)
    """
    if text == "end":
        return math.inf
    from fragdex.seeking.time_texts import parse_time as parse

    try:
        return parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def split_times(
    files: Sequence[str] | None,
    times: Sequence[str | None],
    named: Mapping[str, tuple[str | None, str]],
) -> tuple[list[str], list[str]]:
    """The files and the times of a command whose times follow any number of files.

    They stand there, or are options; then whatever stands in positions is a file.

    Args:
        files: what the parser takes for files.
        times: what it takes for times.
        named: by option: its value, and what stands for it if only the others are given.

    Raises:
        typer.BadParameter: files or times are missing, or times are given in both ways.

    >>> split_times(["a.mp4"], ["1", "2"], {"--start": (None, "0"), "--end": (None, "end")})
    (['a.mp4'], ['1', '2'])
    >>> split_times([], [None, "a.mp4"], {"--start": ("1", "0"), "--end": (None, "end")})
    (['a.mp4'], ['1', 'end'])
    """
    words = [word for word in (*(files or ()), *times) if word is not None]
    options = " and ".join(named)
    given = any(value is not None for value, _ in named.values())
    places = "T0 and T1" if len(named) > 1 else "TIME"
    if len(words) <= (0 if given else len(named)):
        ways = " or ".join(f"{name} TIME" for name in named)
        # begins as what the parser says, so that `run` puts the usage before what can stand for it
        raise typer.BadParameter(f"Missing argument; or FILE... with {ways}")
    if not given:
        return words[: -len(named)], words[-len(named) :]
    if len(words) > 1 and _is_time(words[-1]) and not os.path.lexists(words[-1]):
        raise typer.BadParameter(f"{words[-1]} is a time: give {places} or {options}, not both")
    return words, [default if value is None else value for value, default in named.values()]


def _is_time(text: str) -> bool:
    try:
        parse_time(text)
    except typer.BadParameter:
        return False
    return True


def parse_segment_duration(text: str | None) -> Fraction | float | None:
    """A wanted length of segments as `fragdex.view` takes it; `all` is None.

    Raises:
        typer.BadParameter: it is not a length.

    >>> parse_segment_duration("2.5"), parse_segment_duration("all"), parse_segment_duration(None)
    (Fraction(5, 2), None, Fraction(4, 1))
    """
    if text == "all":
        return None
    length = Fraction(4) if text is None else parse_time(text)
    if not 0 < length < math.inf:
        raise typer.BadParameter(f"--segment-duration is a length above 0, or all: {text}")
    return length


@contextmanager
def usage() -> Iterator[None]:
    """What the library refuses as a value is bad usage.

    Raises:
        typer.BadParameter: for each ValueError.
    """
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _track(value: list[int] | None) -> list[int] | None:
    return value or None


_FILES: Final = typer.Argument(
    metavar="FILE",
    help="Media files, .fidx indexes, URLs (https, s3 and others) or globs; quoted globs too.",
)
Files = Annotated[list[str], _FILES]
FilesAndTimes = Annotated[list[str] | None, _FILES]
"""Files that times follow, or options (`split_times`)."""
Time = Annotated[
    str | None,
    typer.Argument(metavar="TIME", help="Seconds (90, 90.5s), a clock (1:02:03.5), or: end."),
]
At = Annotated[str | None, typer.Option("--at", metavar="TIME", help="The time; the same as TIME.")]
Tracks = Annotated[
    list[int] | None,
    typer.Option(
        "--track",
        "-t",
        metavar="ID",
        callback=_track,
        help="Only this track (track_ID); may be repeated. Default: all.",
    ),
]
SegmentDuration = Annotated[
    str | None,
    typer.Option(
        "--segment-duration",
        metavar="S",
        help="Approximate length of a segment; all: one per key frame.",
        show_default="4",
    ),
]
Track = Annotated[
    int | None,
    typer.Option(
        "--track",
        "-t",
        metavar="ID",
        help="Only this track (track_ID). Default: the first that will do.",
    ),
]
Smart = Annotated[
    bool,
    typer.Option(
        "--smart",
        help="Re-encode the pictures next to the cuts, so that exactly what is named is shown, or"
        " gone, and no picture is hidden (AVC, HEVC, AV1, VP9).",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one document a line.")]
Output = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="PATH", help="Write there; - is stdout.", show_default="stdout"
    ),
]
Jobs = Annotated[
    int, typer.Option("--jobs", "-j", min=1, metavar="N", help="Work on N inputs at a time.")
]
MaxBytes = Annotated[
    int | None,
    typer.Option(
        "--max-bytes",
        min=0,
        metavar="N",
        help="Read at most N bytes of an input; more is an error.",
    ),
]
MaxRequests = Annotated[
    int | None,
    typer.Option(
        "--max-requests",
        min=0,
        metavar="N",
        help="Make at most N requests for an input; more is an error.",
    ),
]
Exact = Annotated[
    bool,
    typer.Option(
        "--exact", help="Read every fragment's header, even if the file has an index inside."
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Use sample positions as declared, even if they are stale.")
]
Init = Annotated[
    str | None,
    typer.Option(
        "--init",
        metavar="PATH",
        help="The initialization segment (ftyp and moov) of segments that have none.",
    ),
]


def placed(text: str) -> Any:
    """The -o of a command that writes a file for each input; its help says what it can be."""
    return typer.Option("--output", "-o", metavar="PATH", help=text)


Period = Annotated[
    int | None,
    typer.Option(
        "--period",
        min=0,
        metavar="N",
        help="Only the part of the Nth moov, from 0, in a file with several.",
    ),
]
IgnoreMtime = Annotated[
    bool,
    typer.Option(
        "--ignore-mtime", help="Use a .fidx even if its media file has another modification time."
    ),
]
Follow = Annotated[
    bool,
    typer.Option(
        "--follow", help="Open the media that a .fidx names outside its own folder as well."
    ),
]
_OPENING: dict[str, tuple[Any, Any]] = {
    "init": (Init, None),
    "exact": (Exact, False),
    "strict": (Strict, False),
    "period": (Period, None),
    "ignore_mtime": (IgnoreMtime, False),
    "follow": (Follow, False),
    "max_bytes": (MaxBytes, None),
    "max_requests": (MaxRequests, None),
}


def opens(*names: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command these options on how its inputs are opened, after its own.

    The command has a parameter `opening` instead of them: a dict of what was given, by name.
    """
    return with_options("opening", {name: _OPENING[name] for name in _OPENING if name in names})


def with_options(
    parameter: str,
    kinds: Mapping[str, tuple[Any, Any]],
    collected: Callable[[dict[str, Any]], Any] = dict,
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command several options in place of one parameter.

    Args:
        parameter: of the command.
        kinds: by name: the annotation and the default of each option.
        collected: makes the parameter of what was given, by name.
    """

    def decorated(command: Callable[..., int]) -> Callable[..., int]:
        own = inspect.signature(command, eval_str=True)
        places = {
            name: [own.parameters[name].replace(kind=inspect.Parameter.KEYWORD_ONLY)]
            for name in own.parameters
        }
        places[parameter] = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
            )
            for name, (kind, default) in kinds.items()
        ]
        parameters = list(chain.from_iterable(places.values()))

        @functools.wraps(command)
        def run(**given: Any) -> int:
            several = {name: given.pop(name) for name in kinds}
            return command(**given, **{parameter: collected(several)})

        # typer reads a command's options off these two
        run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": int}
        return run

    return decorated


# What cannot be had without an extra, and the packages that are imported only when they are used.
_EXTRAS: Final = {
    "service": ("the service", ()),
    "render": ("rendering", ("av", "PIL")),
    "speech": ("transcribing", ("av",)),
}


_BLAS_THREADS: Final = "OPENBLAS_NUM_THREADS"


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """A block of imports after which numpy multiplies matrices in one thread, as a service may.

    Threads for that are half of what numpy's import costs. Processes that are started later have
    their own.
    """
    given = _BLAS_THREADS in os.environ
    os.environ.setdefault(_BLAS_THREADS, "1")
    try:
        yield
    finally:
        if not given:
            os.environ.pop(_BLAS_THREADS, None)


@contextmanager
def extra(name: str) -> Iterator[None]:
    """A block of imports that need an extra.

    Raises:
        MissingExtra: a package is not installed.
    """
    # What is imported stays: to look for garbage in it takes a quarter of a start.
    collects = gc.isenabled()
    gc.disable()
    what, packages = _EXTRAS[name]
    try:
        for package in packages:
            if find_spec(package) is None:
                raise ModuleNotFoundError(package, name=package)
        with _one_blas_thread() if name == "service" else nullcontext():
            yield
    except ModuleNotFoundError as error:
        if (error.name or "fragdex").split(".")[0] == "fragdex":
            raise
        raise MissingExtra(f"{what} needs the package {error.name}", extra=name) from None
    finally:
        if collects:
            gc.enable()
            gc.freeze()
