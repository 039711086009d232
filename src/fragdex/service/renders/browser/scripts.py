"""The scripts that are put into pages."""

from __future__ import annotations

import functools
from importlib import resources
from typing import Final

__all__ = ["CLOCK", "FACTS", "READY", "STEADY", "script"]

STEADY: Final = "steady.js"
CLOCK: Final = "clock.js"
FACTS: Final = "facts.js"

READY: Final = """(async () => {
  const told = globalThis.fragdex;
  if (told && told.ready !== undefined) await told.ready;
  document.documentElement.getBoundingClientRect();
  await document.fonts.ready;
})()"""
"""Settles when the page says that it is ready, and its fonts are here."""


@functools.cache
def script(name: str) -> str:
    """The text of a script."""
    return resources.files(__package__).joinpath(name).read_text("utf-8")
