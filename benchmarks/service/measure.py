"""Alternating runs of servers, and what was wanted of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import load
from rows import Row, Want

__all__ = ["Amount", "Row", "Setting", "Want", "alternate", "compared", "loaded", "median"]


@dataclass(frozen=True, slots=True)
class Setting:
    """How much and how long: bytes of the large file, rounds, seconds of each run."""

    data: Path
    size: int
    rounds: int
    seconds: float
    uploads: int = 200
    pause: Path | None = None

    def wait(self) -> None:
        """Let others measure first, where the machine is shared."""
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


def alternate(
    setting: Setting, contenders: Mapping[str, tuple[Amount, Callable[[int], float]]]
) -> Amounts:
    """Every contender in every round, each round beginning with the next one."""
    names = list(contenders)
    for number in range(setting.rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            setting.wait()
            amount, work = contenders[name]
            amount.runs.append(work(number))
    return {name: amount for name, (amount, _) in contenders.items()}


def loaded(
    setting: Setting, target: load.Target, note: str = ""
) -> tuple[Amount, Callable[[int], float]]:
    """A contender that answers requests; the first, short run of it does not count."""
    warm: list[bool] = []

    def work(number: int) -> float:
        if not warm:
            load.ask(target, 1)
            warm.append(True)
        told = load.ask(target, setting.seconds)
        if told.wrong:
            raise SystemExit(f"{target.path}: {told.wrong} of {told.requests} were not answered")
        return told.per_second

    return Amount("/s", note), work


def median(amounts: Amounts, name: str) -> float:
    """Median of the rounds."""
    return statistics.median(amounts[name].runs)


def compared(amounts: Amounts, ours: str, theirs: str) -> float:
    """The median of the ratios within each round: both met the same minute of the machine."""
    pairs = zip(amounts[ours].runs, amounts[theirs].runs, strict=True)
    return statistics.median(one / other for one, other in pairs)
