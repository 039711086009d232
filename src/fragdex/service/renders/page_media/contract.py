"""What a stage wants of whoever plays the page's media, and what it is given for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from fragdex.service.renders.page_media.strips import SoundStrip
from fragdex.service.renders.site import ORIGIN

__all__ = ["ENDPOINT", "MediaAnswer", "PageMedia", "Staged"]

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

    def evaluate(self, expression: str, awaited: bool = False) -> Any:
        """The value of an expression in the page's main frame."""

    def relieve(self) -> None:
        """Let the browser give back memory that it could do without."""


class PageMedia(Protocol):
    """Plays a page's media.

    A stage adds `scripts` to every frame before the page's own, answers requests below `ENDPOINT`
    by `answer`, and fails requests that the browser itself makes for media (resource type `Media`)
    without a note: their elements are played here. The page's own content security policy must not
    reach the scripts (Page.setBypassCSP).
    """

    @property
    def reads(self) -> Mapping[str, bytes | None]:
        """Paths of the site that were played, each with its SHA-256; None where nothing was."""

    def scripts(self) -> list[str]:
        """What is added to every frame, in this order."""

    def bind(self, stage: Staged) -> None:
        """Take the stage that calls; before the page is loaded."""

    def answer(self, url: str, body: bytes) -> MediaAnswer:
        """Answer a POST of the scripts; called whenever the page asks, also within `evaluate`."""

    def settled(self) -> bool:
        """Whether every element knows what it plays; asked while the page loads, clock stopped."""

    def started(self) -> None:
        """The page stands at the instant of frame 0: what it plays begins now."""

    def before_frame(self, frame: int, time_us: int) -> bool:
        """Draw the pictures of a frame.

        Called when the page's clock reached the frame, before it is drawn; the clock stands still.
        `time_us` counts from frame 0. True where a picture changed.
        """

    def at_skip(self, frame: int, time_us: int) -> None:
        """A frame that is replayed without being drawn, where `before_frame` would be called."""

    def longest_ms(self) -> float | None:
        """When the last of the media that play now will have ended; None: there are none."""

    def sound(self, first: int, stop: int) -> Sequence[SoundStrip]:
        """What is heard in frames first (inclusive) to stop (exclusive), all of them given."""

    def kept(self, strips: Sequence[SoundStrip]) -> Mapping[str, bytes]:
        """What these strips name and nobody else has: it goes with the slice."""

    def refused(self) -> list[str]:
        """What the page wanted and cannot have, by name, and media that cannot be decoded."""

    def close(self) -> None:
        """Give decoders and files back."""
