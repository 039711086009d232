"""Views to the bytes that are written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["bytes_of_view"]


def bytes_of_view(view: Any, source: Any, known: Any = None) -> Iterator[bytes]:
    """The bytes of a view, piece by piece.

    Args:
        view: of one file or several.
        source: that of its one file, open, or one for each.
        known: what the sources must be; None: what the view says.
    """
    from fragdex.views.view import Sources

    with Sources(known or view.sources, source) as sources:
        yield from sources.bytes_of(view.blocks())
