"""What happened on a page, said on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fragdex.cli.output import complain

if TYPE_CHECKING:
    from fragdex.client.api import RenderRecord
    from fragdex.rendering.browser.model import Notes

__all__ = ["INCOMPLETE", "tell"]

INCOMPLETE: Final = 3
"""The exit code where a script of the page failed, was blocked or is missing."""


def tell(notes: Notes | RenderRecord) -> None:
    """Complain about what happened on a page: of a render here, or in a service's record."""
    from fragdex.rendering.glyphs import missing_fonts

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
