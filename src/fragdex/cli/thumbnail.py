"""`fragdex thumbnail`: a picture of a moment."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from functools import partial
from typing import Annotated, Any

import typer

from fragdex.cli import options
from fragdex.cli.inputs import Work, expand
from fragdex.cli.output import emit, json_line, say
from fragdex.cli.output_paths import places

__all__ = ["PictureKind", "picture_kind", "thumbnail"]


class PictureKind(StrEnum):
    """What pictures can be written as."""

    JPEG = "jpeg"
    WEBP = "webp"
    AVIF = "avif"
    PNG = "png"


class FitKind(StrEnum):
    """How a picture is brought to a width and a height."""

    CONTAIN = "contain"
    COVER = "cover"
    FILL = "fill"


SUFFIXES = {".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp", ".avif": "avif", ".png": "png"}


def picture_kind(output: str | None, format: PictureKind | None) -> str:
    """The format that is asked for, by name or by the end of a path; else JPEG.

    >>> picture_kind("a.webp", None), picture_kind("a.webp", PictureKind.PNG)
    ('webp', 'png')
    """
    if format is not None:
        return format.value
    return SUFFIXES.get(os.path.splitext(output or "")[1].lower(), "jpeg")


@options.opens("init", "strict", "period", "ignore_mtime", "follow", "max_bytes", "max_requests")
def thumbnail(
    files: options.Files,
    time: options.Time,
    output: Annotated[
        str | None,
        options.placed("Write there: a file, a folder (FILE's name with .jpg), or - for stdout."),
    ] = None,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="The picture that is shown at TIME, instead of the nearest key frame."
        ),
    ] = False,
    width: Annotated[
        int | None, typer.Option("--width", metavar="N", help="Pixels.", show_default=False)
    ] = None,
    height: Annotated[
        int | None, typer.Option("--height", metavar="N", help="Pixels.", show_default=False)
    ] = None,
    fit: Annotated[
        FitKind, typer.Option("--fit", help="With both: all of it, cut at the edges, or distorted.")
    ] = FitKind.CONTAIN,
    format: Annotated[
        PictureKind | None,
        typer.Option("--format", "-f", help="The kind of picture.", show_default="as in PATH"),
    ] = None,
    quality: Annotated[
        int, typer.Option("--quality", min=1, max=100, metavar="N", help="1 to 100; not of PNG.")
    ] = 80,
    track: options.Track = None,
    json: options.Json = False,
    *,
    opening: dict[str, Any],
) -> int:
    """Make a picture of a moment: JPEG, WebP, AVIF or PNG.

    The key frame nearest to TIME, unless --exact is given: of a remote file, only its bytes are
    read. Needs PyAV and Pillow (pip install 'fragdex[media]').

    Examples:
      fragdex thumbnail movie.mp4 1:02:03 -o movie.jpg --width 320
      fragdex thumbnail 'films/*.mp4' 10 -o posters/ --format avif
    """
    at = options.parse_time(time)
    if output is None:
        raise typer.BadParameter("an output is needed: -o movie.jpg")
    kind = picture_kind(output, format)
    suffix = ".jpg" if kind == "jpeg" else f".{kind}"
    targets = places(expand(files), output, lambda name: suffix, "thumbnails")
    making = partial(
        _make, targets=targets, at=at, opening=opening, track=track, exact=exact, width=width,
        height=height, fit=fit.value, format=kind, quality=quality,
    )  # fmt: skip
    work = Work("thumbnail")
    for name, made in work.each(making, list(targets), 1):
        line = (
            f"{made['thumbnail']}: {made['width']} × {made['height']}, "
            f"{made['time']:.3f} s of {name}\n"
        )
        say(json_line({"file": name, **made}) if json else line, err=output == "-")
    return work.code


def _make(
    name: str,
    targets: dict[str, str],
    at: Fraction | float,
    opening: dict[str, Any],
    **asked: Any,
) -> tuple[dict[str, Any], Sequence[str]]:
    from fragdex import thumbnail
    from fragdex.cli.opening import notes, opened_media

    with opened_media(name, opening) as (index, source, init):
        if math.isinf(at):
            at = max((float(t.end) for t in index.tracks if t.end is not None), default=0.0)
        with options.usage():
            made = thumbnail(index, source, at, init=init, **asked)
        emit([made.data], targets[name])
        told = {
            "thumbnail": targets[name], "time": float(made.time), "width": made.width,
            "height": made.height, "media_type": made.media_type, "size": len(made.data),
        }  # fmt: skip
        return told, notes(index, findings=False)
