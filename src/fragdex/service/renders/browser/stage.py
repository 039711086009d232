"""One page on one Chromium: loaded, stopped at time 0, and looked at frame by frame."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from fragdex.service.renders.browser.model import Limits, Notes, PageFacts, PageMedia
from fragdex.service.renders.browser.timing import View
from fragdex.service.renders.outside import NOTHING, Outside
from fragdex.service.renders.site import Site

__all__ = ["Stage"]


class Stage:
    """A page in a browser of its own, its clock stopped.

    Frames are asked for in rising order: `skip` what nobody wants to see, `frame` the rest.

    Args:
        site: the page's files.
        view: size of the window, frame rate.
        outside: answers requests that leave the site.
        media: the page's own sound and pictures; without it they stay silent and black.
        limits: how far the page may go.

    Raises:
        EngineUnavailable: no Chromium; `advice` says how to get one.
        TooLarge: the view has more pixels than the limits allow.
        PageFailed: the page hangs, crashes, or is not there.
        BrowserGone: the browser ended by no fault of the page's.
    """

    facts: PageFacts
    notes: Notes
    reads: dict[str, bytes | None]

    def __init__(
        self,
        site: Site,
        view: View,
        *,
        outside: Outside = NOTHING,
        media: PageMedia | None = None,
        limits: Limits = Limits(),  # noqa: B008 — frozen
    ) -> None:
        self._site, self.view, self._outside = site, view, outside
        self._media, self._limits = media, limits
        self.notes = Notes()
        self.reads = {}
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def skip(self, first: int, stop: int, progress: Callable[[int], None] = lambda _: None) -> None:
        """Let frames first … stop-1 pass without looking; `progress` is told each i."""
        raise NotImplementedError

    def frame(self, i: int) -> bytes | None:
        """Frame i as PNG; None where it is the same picture as the last one given."""
        raise NotImplementedError

    def evaluate(self, expression: str, awaited: bool = False) -> Any:
        """The value of an expression in the page, as JSON gives it.

        Raises:
            PageFailed: it throws, or does not end.
        """
        raise NotImplementedError

    def close(self) -> None:
        """End the browser and all of its processes."""
        raise NotImplementedError
