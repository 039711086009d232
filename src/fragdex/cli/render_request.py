"""What `fragdex render` is asked for: the kind of file, how it is stored, size, rate and times."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, cast

import typer

from fragdex.cli import options

if TYPE_CHECKING:
    from fragdex.rendering.films import Film
    from fragdex.rendering.plan import RenderSpec
    from fragdex.rendering.stills import Container, Still

__all__ = [
    "SEQUENCE",
    "Kind",
    "bits",
    "crop_of",
    "milliseconds",
    "size_of",
    "spec_of",
    "stdin_html",
]

_FILMS: Final = {
    ".mp4": "mp4", ".m4v": "mp4", ".mov": "mov", ".webm": "webm", ".mkv": "mkv", ".gif": "gif",
    ".m4a": "m4a", ".mp3": "mp3", ".wav": "wav", ".flac": "flac", ".ogg": "ogg", ".opus": "ogg",
}  # fmt: skip
_STILLS: Final = {".png": "png", ".jpeg": "jpeg", ".jpg": "jpeg", ".webp": "webp"}
SEQUENCE: Final = re.compile(r"%(0[1-9])?d")
"""Where the name of an image sequence has the number of the frame."""
_UNITS: Final = {"": 1, "k": 1000, "M": 1_000_000}
# What `Film` calls otherwise.
_NAMES: Final = {"audio": "audio-codec", "transparency": "transparent", "sound": "no-sound"}


@dataclass(frozen=True, slots=True)
class Kind:
    """The kind of file that is made.

    Attributes:
        container: as `Film` or `Still` names it.
        is_film: whether it has many frames.
        image: of a file for each frame, what each is.
    """

    container: str
    is_film: bool
    image: str | None = None

    @classmethod
    def of(cls, output: str, *, animated: bool) -> Self:
        """As the suffix of the output says; `-` is an MP4.

        >>> Kind.of("a.webp", animated=True), Kind.of("frames/%04d.png", animated=False)
        (Kind(container='animated-webp', is_film=True, image=None), \
Kind(container='zip', is_film=True, image='png'))

        Raises:
            typer.BadParameter: no suffix that is known.
        """
        suffix = ".mp4" if output == "-" else Path(output).suffix.lower()
        if animated and suffix != ".webp":
            raise typer.BadParameter("--animated is for .webp")
        if animated:
            return cls("animated-webp", True)
        if SEQUENCE.search(Path(output).name) and suffix in _STILLS:
            return cls("zip", True, _STILLS[suffix])
        if suffix in _FILMS:
            return cls(_FILMS[suffix], True)
        if suffix in _STILLS:
            return cls(_STILLS[suffix], False)
        known = ", ".join({**_FILMS, **_STILLS})
        raise typer.BadParameter(f"{output}: the name must end in {known}")


def spec_of(
    kind: Kind,
    *,
    still: Mapping[str, Any],
    film: Mapping[str, Any],
    size: str | None,
    fps: str,
    duration: str | None,
    at: str | None,
    scale: str = "1",
    start: str | None = None,
    stop: str | None = None,
    crop: str | None = None,
    page_fps: str | None = None,
) -> RenderSpec:
    """What is to be made.

    Args:
        kind: of the file.
        still: what was asked of a still, by the names of `Still`; film: by those of `Film`.
        size, fps, duration, at, scale, start, stop, crop, page_fps: as they were
            written.

    Raises:
        typer.BadParameter: one of them is none, or they do not go together.
    """
    from fragdex.rendering.films import Film
    from fragdex.rendering.plan import RenderSpec

    if kind.image is not None:
        _refuse(kind, {"at": at})
        film = {**film, "image": kind.image, "quality": still["quality"]}
    elif kind.is_film:
        _refuse(kind, {"quality": still["quality"], "at": at})
    else:
        others = {name: given for name, given in film.items() if name not in ("sound", *still)}
        _refuse(kind, {**others, "no-sound": not film["sound"], "from": start, "to": stop})
        if duration is not None:
            raise typer.BadParameter("--duration does not apply to a still: use --at")
    width, height = size_of(size)
    rate = _rate(fps)
    stored = _film(kind.container, film, rate) if kind.is_film else Film()
    spec = RenderSpec(
        width, height, rate, milliseconds("--duration", duration, least=1),
        None if kind.is_film else _still(kind.container, still),
        milliseconds("--at", at, least=0) or 0, stored, _scale(scale),
        milliseconds("--from", start, least=0), milliseconds("--to", stop, least=1),
        crop_of(crop), None if page_fps is None else _rate(page_fps, "--page-fps"),
    )  # fmt: skip
    try:
        spec.check_crop(width, height)
    except ValueError as error:
        raise typer.BadParameter(f"--crop {crop}: {error}") from None
    try:
        spec.check_page_fps()
    except ValueError as error:
        raise typer.BadParameter(f"--page-fps: {error}") from None
    if kind.is_film and spec.end_ms is not None:
        try:
            spec.frames(spec.end_ms)
        except ValueError as error:
            raise typer.BadParameter(f"--from, --to: {error}") from None
    return spec


def _refuse(kind: Kind, given: Mapping[str, Any]) -> None:
    what = "a film" if kind.is_film else "a still"
    for name, value in given.items():
        if value or (value == 0 and value is not False):
            raise typer.BadParameter(f"{_option(name)} does not apply to {what}")


def _option(name: str) -> str:
    return "--" + _NAMES.get(name, name).replace("_", "-")


def stdin_html() -> str:
    """The page that is given on stdin."""
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def _film(container: str, given: Mapping[str, Any], fps: Fraction) -> Film:
    from fragdex.rendering.films import Film

    film = Film(container, **given)
    try:
        film.check(fps)
    except ValueError as error:
        name, _, why = str(error).partition(": ")
        raise typer.BadParameter(f"{_option(name)}: {why}") from None
    return film


def _still(container: str, given: Mapping[str, Any]) -> Still:
    from fragdex.rendering.stills import Still

    if given["quality"] is not None and container == "png":
        raise typer.BadParameter("--quality does not apply to .png")
    if given["transparency"] and container == "jpeg":
        raise typer.BadParameter("a .jpeg cannot be transparent")
    asked = {name: value for name, value in given.items() if value is not None}
    return Still(cast("Container", container), **asked)


def bits(option: str, text: str | None) -> int | None:
    """Bits a second.

    >>> bits("--bit-rate", "2.5M")
    2500000

    Raises:
        typer.BadParameter: it is none.
    """
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kM]?)", text)
    if match is None:
        raise typer.BadParameter(f"{option} {text}: bits a second are expected, such as 800k, 5M")
    return round(float(match[1]) * _UNITS[match[2]])


def size_of(text: str | None) -> tuple[int | None, int | None]:
    """Width and height of `--size`.

    Raises:
        typer.BadParameter: it is none.
    """
    if text is None:
        return None, None
    match = re.fullmatch(r"([1-9]\d{0,5})[xX×]([1-9]\d{0,5})", text)
    if match is None:
        raise typer.BadParameter(f"--size {text}: pixels are expected, such as 1280x720")
    return int(match[1]), int(match[2])


def crop_of(text: str | None) -> tuple[int, int, int, int] | None:
    """Left, top, width and height of `--crop`.

    Raises:
        typer.BadParameter: it is none.
    """
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,5}),(\d{1,5}),([1-9]\d{0,4}),([1-9]\d{0,4})", text)
    if match is None:
        raise typer.BadParameter(
            f"--crop {text}: X,Y,WIDTH,HEIGHT are expected, such as 0,90,640,360"
        )
    left, top, width, height = map(int, match.groups())
    return left, top, width, height


def _scale(text: str) -> float:
    from fragdex.rendering.browser import timing

    with suppress(ValueError):
        if (scale := float(text)) in timing.SCALES:
            return scale
    least, most = timing.SCALES[0], timing.SCALES[-1]
    raise typer.BadParameter(
        f"--scale {text}: {least:g} to {most:g} are expected, in steps of {timing.SCALE_STEP:g}"
    )


def _rate(text: str, option: str = "--fps") -> Any:
    from fragdex.rendering.films import rate_of

    try:
        return rate_of(text if "/" in text or text.isdigit() else float(text))
    except ValueError as error:
        raise typer.BadParameter(f"{option} {text}: {error}") from None


def milliseconds(option: str, text: str | None, *, least: int) -> int | None:
    """A time of at least `least` ms.

    Raises:
        typer.BadParameter: it is none.
    """
    if text is None:
        return None
    seconds = options.parse_time(text)
    if not least / 1000 <= seconds < 1e9:
        raise typer.BadParameter(f"{option} {text}: a time of at least {least} ms is expected")
    return round(1000 * seconds)
