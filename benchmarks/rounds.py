"""Runs in rounds whose result is a number: seconds, requests a second, megabytes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rows import Row

__all__ = ["Amount", "Amounts", "Measured", "Polite", "compared", "in_turns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Polite:
    """A setting that lets others measure first, where the machine is shared."""

    pause: Path | None = None

    def wait(self) -> None:
        """Wait while their file exists."""
        while self.pause is not None and self.pause.exists():
            time.sleep(2)


@dataclass(slots=True)
class Amount:
    """The runs of one contender, in a unit that is not always time."""

    unit: str
    note: str = ""
    runs: list[float] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For the results file."""
        return {
            "median": statistics.median(self.runs),
            "min": min(self.runs),
            "max": max(self.runs),
            "rounds": len(self.runs),
            "unit": self.unit,
            "note": self.note,
            "runs": [round(run, 3) for run in self.runs],
        }


Amounts = dict[str, Amount]
Measured = tuple[Row, Amounts]


def in_turns(
    setting: Polite, rounds: int, names: Sequence[str], run: Callable[[str, int], object]
) -> None:
    """Run every contender in every round, each round beginning with the next one."""
    for number in range(rounds):
        for name in _turned(names, number):
            setting.wait()
            run(name, number)


def _turned(names: Sequence[str], number: int) -> Iterator[str]:
    turn = number % len(names)
    yield from names[turn:]
    yield from names[:turn]


def compared(amounts: Amounts, over: str, under: str) -> float | None:
    """The median of the ratios within each round: both met the same minute of the machine."""
    if over not in amounts or under not in amounts:
        return None
    pairs = zip(amounts[over].runs, amounts[under].runs, strict=True)
    return statistics.median(one / other for one, other in pairs)
