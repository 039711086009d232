"""What happened on a page, said on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fragdex.cli.report import complain
from fragdex.cli.serving import service

if TYPE_CHECKING:
    from fragdex.service.renders.browser.model import Notes

__all__ = ["tell"]


def tell(notes: Notes) -> None:
    """Complain about what happened on a page."""
    for one in notes.blocked:
        complain(f"blocked: {one.url}: {one.reason}")
    for kind in ("refused", "browser", "console", "incomplete"):
        for line in getattr(notes, kind):
            # what was thrown stands in the console, too
            if kind != "console" or line.removeprefix("error: ") not in notes.incomplete:
                complain(f"{kind}: {line}")
    for line in service("renders.glyphs").missing_fonts(notes.glyphs):
        complain(f"fonts: {line}")
