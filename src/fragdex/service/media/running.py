"""Starts the media work as a process of its own, listens to it, and ends it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from fragdex.service.errors import StoreFull, Unprocessable
from fragdex.service.media.made import Made
from fragdex.service.processes import CRASHES, Process

__all__ = ["run"]

STALL_SECONDS: Final = 300.0
"""Silence after which the work is taken for hung; it speaks several times a second."""

_POLL_SECONDS: Final = 0.25


def run(
    path: Path,
    folder: Path,
    progress: Callable[[float], None] = lambda _: None,
    check: Callable[[], None] = lambda: None,
    *,
    scrub_alone: bool = False,
    stall_seconds: float = STALL_SECONDS,
) -> list[Made]:
    """Make the tracks of a media file in a child process.

    Args:
        path: the media file.
        folder: an empty folder for what is made.
        progress: called with 0…1, in this thread.
        check: called several times a second; what it raises ends the child.
        scrub_alone: only the scrub track; none of a file without video.

    Raises:
        Unprocessable: the file is none that can be processed, or breaks the libraries.
        StoreFull: no room in the folder.
        RuntimeError: the child failed for another reason.
    """
    wanted = ["scrub"] if scrub_alone else []
    child = Process("fragdex.service.media.child", str(path), str(folder), *wanted)
    try:
        answer = _listen(child, progress, check, stall_seconds)
    finally:
        child.end()
    if "made" in answer:
        return [Made(**one) for one in answer["made"]]
    if "unprocessable" in answer:
        told = answer["unprocessable"]
        raise Unprocessable(told["detail"], more=told["more"])
    raise _failure(child)


def _listen(
    child: Process,
    progress: Callable[[float], None],
    check: Callable[[], None],
    stall_seconds: float,
) -> dict[str, Any]:
    heard = time.monotonic()
    answer: dict[str, Any] = {}
    while True:
        check()
        try:
            said = child.hear(_POLL_SECONDS)
        except EOFError:
            return answer
        if said is None:
            if time.monotonic() - heard > stall_seconds:
                raise Unprocessable("the media libraries hung on this file")
            continue
        heard = time.monotonic()
        if "progress" in said:
            progress(said["progress"])
        else:
            answer = said


def _failure(child: Process) -> Exception:
    ending, words = child.ending, child.words
    if ending in CRASHES:
        return Unprocessable("the media libraries broke on this file", found=ending)
    if isinstance(ending, str):
        return RuntimeError(f"the media process was ended by {ending}")
    if "MemoryError" in words:
        return Unprocessable("the file needs more memory than a media process may have")
    if "No space left on device" in words:
        return StoreFull("no room for the tracks of the file", retry_after=60)
    return RuntimeError(f"the media process ended with {ending}: {words}")
