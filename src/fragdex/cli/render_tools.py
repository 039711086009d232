"""The tools of `fragdex render` around a film: what each is asked for, and which is meant."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from fragdex.cli.output import json_line, need_folder, part_progress, say
from fragdex.cli.render_check import check_page
from fragdex.cli.render_estimate import estimate_page
from fragdex.cli.render_notes import tell
from fragdex.cli.render_preview import preview_page

if TYPE_CHECKING:
    from fragdex.rendering.plan import RenderSpec
    from fragdex.rendering.pool import PageSource
    from fragdex.rendering.stills import Container, Still

__all__ = ["Check", "ContactSheet", "Estimate", "Port", "Preview", "Tool", "tool_of"]

Tool = Callable[[str, "PageSource", "RenderSpec", bool], int]
"""Name of the page, page, film, whether JSON is wanted → the exit code."""

Check = Annotated[
    bool,
    typer.Option(
        "--check",
        help="Make no film: draw a few frames twice, and say what would be wrong with it.",
    ),
]
ContactSheet = Annotated[
    str | None,
    typer.Option(
        "--contact-sheet",
        metavar="CxR",
        help="Make a picture of the film's frames in a grid of columns and rows, with their times.",
        show_default=False,
    ),
]
Estimate = Annotated[
    bool,
    typer.Option(
        "--estimate",
        help="Make no film: draw a few frames, and say what time, memory and disk it needs.",
    ),
]
Preview = Annotated[
    bool,
    typer.Option("--preview", help="Make no film: show it in a browser, as it would be drawn."),
]
Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        min=0,
        max=65535,
        metavar="N",
        help="Of the preview, on loopback.",
        show_default="any free one",
    ),
]
_SHEETS: Final[dict[str, Container]] = {
    ".png": "png",
    ".jpeg": "jpeg",
    ".jpg": "jpeg",
    ".webp": "webp",
}
_MOST: Final = 400


def tool_of(
    output: str | None,
    quality: int | None,
    jobs: int | None,
    slices: int | None,
    *,
    check: bool,
    contact_sheet: str | None,
    estimate: bool,
    preview: bool,
    port: int | None,
) -> Tool | None:
    """The tool that is asked for; None: the film itself.

    Raises:
        typer.BadParameter: several are, or one that does not go with the output.
    """
    asked = {
        "--check": check,
        "--contact-sheet": contact_sheet is not None,
        "--estimate": estimate,
        "--preview": preview,
    }
    names = [name for name, is_asked in asked.items() if is_asked]
    if len(names) > 1:
        raise typer.BadParameter(f"{' and '.join(names)} do not go together")
    if contact_sheet is not None:
        return _sheet_of(output, quality, contact_sheet)
    if names and output is not None:
        raise typer.BadParameter(f"{names[0]} and -o do not go together")
    if names and quality is not None:
        raise typer.BadParameter(f"{names[0]} and --quality do not go together")
    if port is not None and not preview:
        raise typer.BadParameter("--port is for --preview")
    if preview:
        return partial(preview_page, port or 0)
    if estimate:
        return partial(estimate_page, jobs, slices)
    return check_page if check else None


def _sheet_of(output: str | None, quality: int | None, grid: str) -> Tool:
    from fragdex.rendering.stills import Still

    match = re.fullmatch(r"([1-9]\d{0,2})[xX×]([1-9]\d{0,2})", grid)
    if match is None or (columns := int(match[1])) * (rows := int(match[2])) > _MOST:
        raise typer.BadParameter(
            f"--contact-sheet {grid}: columns and rows are expected, such as 4x4, of at most"
            f" {_MOST} frames"
        )
    container = None if output is None else _SHEETS.get(Path(output).suffix.lower())
    if output is None or container is None:
        raise typer.BadParameter(f"--contact-sheet: -o is needed, ending in {', '.join(_SHEETS)}")
    if quality is not None and container == "png":
        raise typer.BadParameter("--quality does not apply to .png")
    need_folder(output)
    still = Still(container) if quality is None else Still(container, quality)
    return partial(_make_sheet, columns, rows, output, still)


def _make_sheet(
    columns: int, rows: int, output: str, still: Still, name: str, page: PageSource,
    spec: RenderSpec, json: bool,
) -> int:  # fmt: skip
    from fragdex.rendering.contact_sheet import contact_sheet

    with part_progress(Path(name).name, "frames") as progress:
        made = contact_sheet(page, spec, columns, rows, Path(output), still, progress)
    tell(made.notes)
    width, height = made.size
    if json:
        times = [round(float(frame / made.view.fps), 6) for frame in made.frames]
        facts = {"page": name, "file": output, "width": width, "height": height,
                 "frames": list(made.frames), "times": times}  # fmt: skip
        say(json_line(facts))
    else:
        say(f"{output}: {width}×{height}, {len(made.frames)} frames\n")
    return 0
