"""A URL of the page becomes bytes that are read by ranges."""

from __future__ import annotations

from collections.abc import Callable

from fragdex.sources import Source

__all__ = ["OpenMedia"]

OpenMedia = Callable[[str], Source]
"""URL (or the name of a file of samples) → its bytes; raises FragdexError or Blocked."""
