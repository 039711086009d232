"""The scripts that are put into pages, and what stands for all of them."""

from __future__ import annotations

import functools
import hashlib
from importlib import resources
from typing import Final

__all__ = ["CLOCK", "FACTS", "READY", "STEADY", "fingerprint", "script"]

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


@functools.cache
def fingerprint() -> bytes:
    """SHA-256 of everything here that decides what a page looks like."""
    texts = [*map(script, (STEADY, CLOCK, FACTS)), READY]
    return hashlib.sha256("\0".join(texts).encode()).digest()
