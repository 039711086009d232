"""The options of `fragdex render` for the fields of a render, and what it writes and tells."""

from __future__ import annotations

import inspect
import os
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

import typer

from fragdex.cli.output import complain, emit, validate_folder
from fragdex.record import record

if TYPE_CHECKING:
    from fragdex.client.api import RenderRecord
    from fragdex.rendering.browser.model import Notes
    from fragdex.rendering.fields import RenderField
    from fragdex.rendering.outputs import Film, Still
    from fragdex.rendering.render import Rendered
    from fragdex.rendering.spec import RenderSpec


SEQUENCE: Final = re.compile(r"%(0[1-9])?d")
"""Where the name of an image sequence has the number of the frame."""


def option_fields() -> Iterator[RenderField]:
    """The declared fields that have an option, in the order of the help."""
    from fragdex.rendering.fields import declared_fields
    from fragdex.rendering.outputs import Film, Still
    from fragdex.rendering.spec import RenderSpec

    options = set()
    for owner in (RenderSpec, Still, Film):
        for one in declared_fields(owner).values():
            if one.option and one.option not in options:
                options.add(one.option)
                yield one


def output_help() -> str:
    """What the suffix of the output decides."""
    from fragdex.rendering.outputs import CONTAINERS

    def suffixes(*groups: str) -> str:
        return ", ".join(
            one.suffixes[0] for one in CONTAINERS.values() if one.group in groups and one.suffixes
        )

    return (
        f"Write there; the suffix decides: {suffixes('film', 'animation')}, or a still:"
        f" {suffixes('still')}; frames/%05d.png is a file for each frame, {suffixes('sound')} the"
        " sound alone; - is an MP4 to stdout."
    )


def declare_options(command: Any) -> None:
    """Give a command an option for each field, after its `output`.

    It is called with them in its `**fields`. A command that has them already is left as it is.
    """
    if hasattr(command, "__signature__"):
        return
    own = inspect.signature(command, eval_str=True)
    parameters = []
    for parameter in own.parameters.values():
        if parameter.name == "output":
            output = typer.Option("--output", "-o", metavar="PATH", help=output_help())
            parameters.append(parameter.replace(annotation=Annotated[str | None, output]))
            parameters += map(_parameter, option_fields())
        elif parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            parameters.append(parameter)
    # typer reads a command's options off these two
    command.__signature__ = own.replace(
        parameters=[one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    )
    command.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": int}


_TYPES: Final[Mapping[str, Any]] = {"count": int, "number": float}


def _parameter(one: RenderField) -> inspect.Parameter:
    is_flag = one.kind in ("flag", "absence")
    option = typer.Option(one.option, metavar=one.metavar, help=one.help, show_default=one.usual)
    # of a field that sets others, too, the text is of them all
    annotation = bool if is_flag else (str if one.sets else _TYPES.get(one.kind, str)) | None
    return inspect.Parameter(
        one.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=False if is_flag else None,
        annotation=Annotated[annotation, option],
    )


@record(frozen=True, slots=True)
class FileKind:
    """The kind of file that is made.

    Attributes:
        container: a name of `CONTAINERS`.
        image: of a file for each frame, what each is.
    """

    container: str
    image: str | None = None

    @classmethod
    def of(cls, output: str, *, animated: bool) -> Self:
        """As the suffix of the output says; `-` is an MP4.

        >>> FileKind.of("a.webp", animated=True), FileKind.of("frames/%04d.png", animated=False)
        (FileKind(container='animated-webp', image=None), FileKind(container='zip', image='png'))

        Raises:
            typer.BadParameter: no suffix that is known.
        """
        from fragdex.rendering.outputs import CONTAINERS

        suffix = ".mp4" if output == "-" else Path(output).suffix.lower()
        if animated and suffix != ".webp":
            raise typer.BadParameter("--animated is for .webp")
        if animated:
            return cls("animated-webp")
        known = {end: name for name, one in CONTAINERS.items() for end in one.suffixes}
        if suffix not in known:
            raise typer.BadParameter(f"{output}: the name must end in {', '.join(known)}")
        container = known[suffix]
        if SEQUENCE.search(Path(output).name) and CONTAINERS[container].group == "still":
            return cls("zip", container)
        return cls(container)


def spec_of(kind: FileKind, options: Mapping[str, Any]) -> RenderSpec:
    """What is to be made.

    Args:
        kind: of the file.
        options: as they were given, by the names of the fields.

    Raises:
        typer.BadParameter: one of them is invalid, or they cannot be combined.
    """
    from fragdex.rendering.fields import declared_fields
    from fragdex.rendering.outputs import CONTAINERS, Film, Still
    from fragdex.rendering.spec import RenderSpec

    is_still = CONTAINERS[kind.container].group == "still"
    owner: type[Film | Still] = Still if is_still else Film
    view, stored = declared_fields(RenderSpec), declared_fields(owner)
    values: dict[str, Any] = {}
    for one in option_fields():
        value = options.get(one.name)
        if value is None or value is False:
            continue
        if one.of == ("film" if is_still else "still") or one.name not in {**view, **stored}:
            instead = ": use --at" if one.option == "--duration" else ""
            what = "a still" if is_still else "a video"
            raise typer.BadParameter(f"{one.option} does not apply to {what}{instead}")
        values.update(_read(one, value))
    settings = {name: values.pop(name) for name in stored if name in values}
    if kind.image is not None:
        settings["image"] = kind.image
    values["still" if is_still else "film"] = owner(kind.container, **settings)  # type: ignore[arg-type]
    spec = RenderSpec(**values)
    _check(spec, options)
    return spec


def _read(one: RenderField, value: Any) -> dict[str, Any]:
    """The values that an option sets."""
    from fragdex.rendering.fields import read_text

    if one.kind == "absence":
        return {one.name: False}
    if not isinstance(value, str):
        return {one.name: value}
    try:
        read = read_text(value, one)
    except ValueError as error:
        raise typer.BadParameter(f"{one.option} {value}: {error}") from None
    return dict(zip(one.sets, read, strict=True)) if one.sets else {one.name: read}


def _check(spec: RenderSpec, options: Mapping[str, Any]) -> None:
    """Refuse what does not go together, by the names of options."""
    from fragdex.rendering.fields import declared_fields

    try:
        spec.output.check() if spec.still else spec.film.check(spec.fps)
    except ValueError as error:
        name, _, why = str(error).partition(": ")
        declared = {**declared_fields(type(spec)), **declared_fields(type(spec.output))}
        raise typer.BadParameter(f"{declared[name].option}: {why}") from None
    try:
        spec.check_crop(spec.width, spec.height)
    except ValueError as error:
        raise typer.BadParameter(f"--crop {options['crop']}: {error}") from None
    try:
        spec.check_page_fps()
    except ValueError as error:
        raise typer.BadParameter(f"--page-fps: {error}") from None
    if spec.still is None and spec.end_ms is not None:
        try:
            spec.frames(spec.end_ms)
        except ValueError as error:
            raise typer.BadParameter(f"--start, --stop: {error}") from None


INCOMPLETE: Final = 3
"""The exit code where a script of the page failed, was blocked or is missing."""
_NOTES: Final = ("blocked", "browser", "browser_versions", "console", "glyphs", "incomplete",
                 "refused")  # fmt: skip
_PIECE: Final = 1 << 20


def tell_notes(notes: Notes | RenderRecord) -> None:
    """Complain about what happened on a page: of a render here, or in a service's record."""
    from fragdex.rendering.browser.model import missing_fonts

    for one in notes.blocked:
        complain(f"blocked: {one.url}: {one.reason}")
    for kind in ("refused", "browser", "console", "incomplete"):
        for line in getattr(notes, kind):
            # what was thrown stands in the console, too
            if kind != "console" or line.removeprefix("error: ") not in notes.incomplete:
                complain(f"{kind}: {line}")
    glyphs = getattr(notes, "glyphs", None)  # a record has none
    for line in missing_fonts(glyphs) if glyphs else ():
        complain(f"fonts: {line}")


@contextmanager
def target_of(output: str, kind: FileKind) -> Iterator[tuple[Path, Callable[[], None]]]:
    """Where to render to, and what is done with it in the end."""
    if kind.image is not None:
        validate_folder(output)
        with tempfile.TemporaryDirectory(prefix=".fragdex-", dir=Path(output).parent) as folder:
            path = Path(folder, "frames.zip")
            yield path, lambda: _unpack(path, output)
        return
    if output != "-":
        validate_folder(output)
        yield Path(output), lambda: None
        return
    with tempfile.TemporaryDirectory(prefix="fragdex-") as folder:
        path = Path(folder, "film.mp4")

        def copy() -> None:
            with path.open("rb") as file:
                emit(iter(lambda: file.read(_PIECE), b""), "-")

        yield path, copy


def _unpack(archive: Path, output: str) -> None:
    """Write the pictures of an archive where they are wanted, each whole or not at all."""
    from fragdex.rendering.join import frame_of

    folder, name = Path(output).parent, Path(output).name
    number = SEQUENCE.search(name)
    assert number is not None
    with zipfile.ZipFile(archive) as pictures:
        for picture in pictures.namelist():
            new = Path(pictures.extract(picture, archive.parent))
            text = number[0] % frame_of(picture)
            new.replace(folder / (name[: number.start()] + text + name[number.end() :]))


def facts_of(
    page: str, output: str, film: Film, rendered: Rendered, seconds: float,
    given: Mapping[str, Any] | None,
) -> dict[str, Any]:  # fmt: skip
    """The output of `--json` for a render.

    Args:
        page, output: as they were written.
        film: how it is stored.
        seconds: that it took.
        given: the data of the page.
    """
    from fragdex.rendering.site import recorded

    notes = rendered.notes.as_json()
    data, data_sha256 = recorded(given)
    width, height = (None, None) if film.is_sound else rendered.view.frame
    return {
        "page": page,
        "file": output,
        "byte_size": os.path.getsize(rendered.path),
        "width": width,
        "height": height,
        "scale": rendered.view.scale,
        "frame_rate": str(rendered.view.fps),
        "first_frame": rendered.slices[0].first,
        "frames": rendered.frames,
        "duration": round(rendered.seconds, 6),
        "sound": rendered.sound,
        "loudness": rendered.loudness,
        "unchanged_frames": sum(one.unchanged for one in rendered.slices),
        "data": data,
        "data_sha256": data_sha256,
        "seconds": round(seconds, 3),
        "slices": [
            {"first_frame": one.first, "frames": one.frames, "seconds": one.seconds}
            for one in rendered.slices
        ],
        **{kind: notes[kind] for kind in _NOTES},
    }


def line_of(facts: Mapping[str, Any]) -> str:
    """The same in one line for people."""
    size = f"{facts['width']}×{facts['height']}"
    if facts["width"] is None:
        size = "sound" if facts["sound"] else "silence, as the page plays nothing"
    kib = f"{facts['byte_size'] / 1024:,.1f} KiB"
    took = f"rendered in {facts['seconds']:.1f} s"
    if not facts["duration"]:
        return f"{facts['file']}: {kib}, {size}, {took}\n"
    sound = ", with sound" if facts["sound"] and facts["width"] is not None else ""
    many = "frame" if facts["frames"] == 1 else "frames"
    loudness = _loudness(facts["loudness"])
    return (
        f"{facts['file']}: {kib}, {facts['duration']:.3f} s, {size}, {facts['frames']:,} {many}"
        f"{sound}{loudness}, {took}\n"
    )


def _loudness(loudness: dict[str, Any] | None) -> str:
    """What was done about the loudness; nothing where none was requested, or there is none."""
    if loudness is None or loudness["integrated"] is None:
        return ""
    return f", {loudness['integrated'] + loudness['gain']:.1f} LUFS by {loudness['gain']:+.1f} dB"
