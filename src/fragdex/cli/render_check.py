"""`fragdex render --check`: what will be wrong with the film of a page, before it is made."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fragdex.cli.output import json_line, part_progress, say

if TYPE_CHECKING:
    from fragdex.rendering.lint import Linted
    from fragdex.rendering.plan import RenderSpec
    from fragdex.rendering.pool import PageSource

__all__ = ["FOUND", "check_page"]

FOUND: Final = 3
"""The exit code where something was found."""


def check_page(name: str, page: PageSource, spec: RenderSpec, json: bool) -> int:
    """Look at a page and print what was found.

    Args:
        name: of the page, as the user gave it.

    Returns: 0 where nothing was found, else `FOUND`.
    """
    from fragdex.rendering.lint import lint

    with part_progress(Path(name).name, "frames") as progress:
        made = lint(page, spec, progress)
    say(json_line(_facts(name, made)) if json else "".join(_lines(name, made)))
    return FOUND if made.findings else 0


def _facts(name: str, made: Linted) -> dict[str, Any]:
    width, height = made.view.frame if made.view is not None else (None, None)
    findings = [
        asdict(one) | {"file": None if one.file is None else _file(name, one.file)}
        for one in made.findings
    ]
    return {
        "page": name,
        "width": width,
        "height": height,
        "duration": None if made.duration_ms is None else made.duration_ms / 1000,
        "frames": len(made.frames),
        "drawn_twice": list(made.drawn),
        "findings": findings,
    }


def _lines(name: str, made: Linted) -> list[str]:
    lines = []
    for one in made.findings:
        place = "" if one.file is None else _file(name, one.file)
        place += f":{one.line}: " if one.line else ": " if place else ""
        lines.append(f"{place}{one.kind}: {one.text}\n")
    many = len(made.findings)
    what = "nothing was found" if not many else f"{many} finding" + "s" * (many != 1)
    if made.view is None or not made.drawn:
        return [*lines, f"{name}: {what}\n"]
    width, height = made.view.frame
    drawn = f"{len(made.drawn)} of {len(made.frames):,} frames of {width}×{height} drawn twice"
    return [*lines, f"{name}: {what}; {drawn}\n"]


def _file(name: str, file: str) -> str:
    """A file of the site as its author knows it."""
    path = Path(name)
    if name == "-" or name.startswith(("http://", "https://")):
        return file or name
    if path.is_dir():
        return str(path / (file or "index.html"))
    return str(path.parent / file) if file else name
