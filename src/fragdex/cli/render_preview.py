"""`fragdex render --preview`: the film of a page in a browser, before it is made."""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import TYPE_CHECKING

import typer

from fragdex.cli.output import json_line, say

if TYPE_CHECKING:
    from fragdex.rendering.plan import RenderSpec
    from fragdex.rendering.pool import PageSource

__all__ = ["preview_page"]


def preview_page(port: int, name: str, page: PageSource, spec: RenderSpec, json: bool) -> int:
    """Show the film of a page until interrupted; returns the exit code."""
    from fragdex.rendering.preview.film_preview import FilmPreview, LocalServer

    preview = FilmPreview(name, page, spec)
    try:
        server = LocalServer(preview, port)
    except OSError as error:
        preview.close()
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        raise typer.BadParameter(f"--port {port}: it cannot be used: {error.strerror}") from None
    say(json_line({"page": name, "url": server.url}) if json
        else f"{name}: open {server.url}\nCtrl+C ends the preview.\n")  # fmt: skip
    with suppress(KeyboardInterrupt):
        server.run()
    return 0
