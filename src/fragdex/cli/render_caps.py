"""`--max-seconds` and `--max-cost` of `fragdex render`: an end to what takes too much."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final

import typer

from fragdex.errors import FragdexError

__all__ = ["Caps", "MaxCost", "MaxSeconds"]

MaxSeconds = Annotated[
    float | None,
    typer.Option(
        "--max-seconds",
        min=0.1,
        metavar="S",
        help="End a render that takes longer, or that is foreseen to.",
        show_default=False,
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        min=0.1,
        metavar="S",
        help="The same for seconds of processor time, of browsers and encoders together.",
        show_default=False,
    ),
]
# From when on it is foreseen what a render takes: seconds, frames, and how far it may be off.
_SEEN_SECONDS: Final = 3.0
_SEEN_FRAMES: Final = 10
_OFF: Final = 2
_LOOK_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class _Cap:
    """What may be taken, and how much was."""

    option: str
    most: float
    taken: Callable[[], float]
    unit: str

    @property
    def limit(self) -> str:
        return f"{self.option} {self.most:g}"


class Caps:
    """Tells how far a render is, and ends it when it takes too much.

    Args:
        seconds: that it may take, from now; None: as long as it does.
        cost: seconds of processor time that all of its processes may take; None: what they do.
        progress: called with frames done and frames in all.

    Raises:
        FragdexError: it took more, or would take twice as much by what was seen of it.
    """

    def __init__(
        self, seconds: float | None, cost: float | None, progress: Callable[[int, int], object]
    ) -> None:
        self._progress, self._lock = progress, threading.Lock()
        self._caps: list[_Cap] = []
        began = time.monotonic()
        if seconds is not None:
            self._caps.append(_Cap("--max-seconds", seconds, lambda: time.monotonic() - began, "s"))
        if cost is not None:
            if not os.path.exists("/proc/self/stat"):
                raise typer.BadParameter("--max-cost: this system does not tell processor time")
            from fragdex.sandbox.processes import ProcessorTime

            processor = ProcessorTime(os.getpid())
            self._caps.append(_Cap("--max-cost", cost, processor.seconds, "s of processor time"))
        self._looked = began - _LOOK_SECONDS
        self._first: tuple[float, int, list[float]] | None = None

    def __call__(self, done: int, whole: int) -> None:
        """Frames done, and frames in all."""
        self._progress(done, whole)
        with self._lock:
            now = time.monotonic()
            if not self._caps or now - self._looked < _LOOK_SECONDS:
                return
            self._looked = now
            taken = [cap.taken() for cap in self._caps]
            for cap, spent in zip(self._caps, taken, strict=True):
                if spent > cap.most:
                    raise FragdexError(
                        f"ended after {spent:.1f} {cap.unit}, with {done:,} of {whole:,} frames"
                        f" done ({cap.limit})"
                    )
            self._foresee(now, done, whole, taken)

    def _foresee(self, now: float, done: int, whole: int, taken: list[float]) -> None:
        if self._first is None:
            if done:
                self._first = now, done, taken
            return
        since, first, before = self._first
        if now - since < _SEEN_SECONDS or done - first < _SEEN_FRAMES:
            return
        for cap, spent, then in zip(self._caps, taken, before, strict=True):
            foreseen = spent + (whole - done) * (spent - then) / (done - first)
            if foreseen > _OFF * cap.most:
                raise FragdexError(
                    f"ended after {spent:.1f} {cap.unit}: {done:,} of {whole:,} frames were done,"
                    f" and all of them would take about {foreseen:.0f} {cap.unit} ({cap.limit})"
                )
