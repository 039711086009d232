"""The scripts that are put into pages."""

from __future__ import annotations

import functools
from importlib import resources
from typing import Final

__all__ = [
    "BRIDGE", "CLOCK", "FACTS", "FONTS", "GLYPHS", "READY", "SEEK", "SOURCES", "STEADY", "USES",
    "WORKER", "WORKS", "script",
]  # fmt: skip

SOURCES: Final = "sources.js"
STEADY: Final = "steady.js"
CLOCK: Final = "clock.js"
FACTS: Final = "facts.js"
BRIDGE: Final = "bridge.js"
WORKER: Final = "worker.js"
GLYPHS: Final = "glyphs.js"
USES: Final = "uses.js"

READY: Final = "(async () => { await globalThis.fragdex?.ready; })()"
"""Settles when the page says that it is ready."""

FONTS: Final = """(async () => {
  document.documentElement.getBoundingClientRect();
  await document.fonts.ready;
})()"""
"""Settles when the page's fonts are here."""

SEEK: Final = "(async () => {{ await globalThis.fragdex.seek({ms!r}); }})()"
"""Settles when the page shows a moment, as it says."""


WORKS: Final = "globalThis.__fragdexWorks?.()"
"""What takes the machine's time, and no time of the page: how much was begun, how much is done."""


@functools.cache
def script(name: str) -> str:
    """The text of a script."""
    return resources.files(__package__).joinpath(name).read_text("utf-8")
