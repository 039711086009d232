"""What is rendered, each in a process that is started for it, or is still warm.

A process renders one site. It may do several jobs, one after the other: where the next slice of
the same render begins at or behind the frame that its browser has reached, it goes on from there.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from fragdex.service.renders.browser.model import Limits, PageFacts
from fragdex.service.renders.browser.timing import View
from fragdex.service.renders.made import Joined, SliceMade
from fragdex.service.renders.outside import NOTHING, Outside
from fragdex.service.renders.process import Check, Child, Progress, nothing
from fragdex.service.renders.site import Site
from fragdex.service.renders.stills import Still
from fragdex.service.renders.warm import Warm

__all__ = ["Child", "Warm", "look", "run_join", "run_slice", "run_still"]


@contextlib.contextmanager
def _child(
    site: Site, view: View, first: int, outside: Outside, limits: Limits,
    warm: Warm | None, key: str,
) -> Iterator[Child]:  # fmt: skip
    child = warm.take(key, view, first) if warm is not None else None
    if child is None:
        child = Child(site, outside=outside, limits=limits)
    else:
        child.outside = outside
    try:
        yield child
    except BaseException:
        child.end()
        raise
    if warm is not None:
        warm.keep(key, child)
    else:
        child.end()


def look(
    site: Site,
    view: View,
    *,
    outside: Outside = NOTHING,
    limits: Limits = Limits(),  # noqa: B008 — frozen
    check: Check = nothing,
    warm: Warm | None = None,
    key: str = "",
) -> PageFacts:
    """What a page tells of itself, seen through a view.

    Raises:
        PageFailed: the page hangs, crashes, or is not there.
        BrowserGone: the process ended by no fault of the page's.
        EngineUnavailable: no Chromium.
        TooLarge: the view has more pixels than the limits allow.
    """
    with _child(site, view, 0, outside, limits, warm, key) as child:
        return child.look(view, check=check)


def run_slice(
    site: Site,
    view: View,
    first: int,
    stop: int,
    folder: Path,
    *,
    outside: Outside = NOTHING,
    limits: Limits = Limits(),  # noqa: B008 — frozen
    progress: Progress = nothing,
    check: Check = nothing,
    warm: Warm | None = None,
    key: str = "",
) -> SliceMade:
    """Render frames first … stop-1 into a file of a folder, in a process of their own.

    Args:
        progress: called in this thread with how many frames are done.
        check: called several times a second; what it raises ends the process and its browser.
        warm, key: where processes are kept between slices, and the name of the render there.

    Raises:
        StoreFull: no room in the folder; and as `look`.
    """
    with _child(site, view, first, outside, limits, warm, key) as child:
        return child.slice(view, first, stop, folder, progress=progress, check=check)


def run_still(
    site: Site,
    view: View,
    time_ms: int,
    still: Still,
    folder: Path,
    *,
    outside: Outside = NOTHING,
    limits: Limits = Limits(),  # noqa: B008 — frozen
    check: Check = nothing,
    warm: Warm | None = None,
    key: str = "",
) -> SliceMade:
    """Render the picture of one moment into a file of a folder; raises as `run_slice`."""
    with _child(site, view, 0, outside, limits, warm, key) as child:
        return child.still(view, time_ms, still, folder, check=check)


def run_join(
    site: Site,
    slices: Sequence[SliceMade],
    view: View,
    out: Path,
    *,
    outside: Outside = NOTHING,
    limits: Limits = Limits(),  # noqa: B008 — frozen
    progress: Progress = nothing,
    check: Check = nothing,
) -> Joined:
    """Write slices one behind the other, with the sound of the whole; raises as `run_slice`.

    Args:
        slices: in order, each with the `path` where its file is now.
        progress: called with how many frames are written.
    """
    # A film may be larger than the temporary folder.
    with (
        tempfile.TemporaryDirectory(prefix="join-", dir=out.parent) as folder,
        Child(site, outside=outside, limits=limits, folder=Path(folder)) as child,
    ):
        return child.join(slices, view, out, progress=progress, check=check)
