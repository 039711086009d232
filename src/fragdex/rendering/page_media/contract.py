"""What a stage and the player of its page's media know of each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from fragdex.rendering.site import ORIGIN

__all__ = ["ENDPOINT", "MediaAnswer", "Staged"]

ENDPOINT: Final = f"{ORIGIN}/.fragdex/media/"
"""Requests below this URL are the scripts' own. They are asked for while the page waits (a
synchronous request), so that no time passes and every run asks at the same moment."""


@dataclass(frozen=True, slots=True)
class MediaAnswer:
    """The answer to a request of the scripts."""

    status: int
    media_type: str
    body: bytes
    headers: dict[str, str] = field(default_factory=lambda: {"Access-Control-Allow-Origin": "*"})


class Staged(Protocol):
    """What is wanted of a stage."""

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page's main frame."""

    def relieve(self) -> None:
        """Let the browser give back memory that it could do without."""
