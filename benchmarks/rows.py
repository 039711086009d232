"""What a row of the results is: a piece of work, its figures, and what was wanted of it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clock import Contender, Figures, race
from inputs import Counts


class ProgramMissing(Exception):
    """A row that needs a program which is not installed is left out."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What every row is given: the inputs by key, and how long to run.

    `rounds` is for the fast; `slow` (seconds a run) and `slowest` (up to a minute) get fewer.
    """

    files: Mapping[str, tuple[Path, Counts]]
    rounds: int = 15
    slow: int = 5
    slowest: int = 3


@dataclass(frozen=True, slots=True)
class Want:
    """A figure to reach; `reached` is None where it could not be measured."""

    text: str
    reached: float | None
    limit: float
    at_most: bool
    unit: str = "×"

    @property
    def ok(self) -> bool | None:
        """Whether it was reached."""
        if self.reached is None:
            return None
        return self.reached <= self.limit if self.at_most else self.reached >= self.limit

    def as_dict(self) -> dict[str, Any]:
        """The want for the results file."""
        return {
            "want": self.text,
            "limit": self.limit,
            "at_most": self.at_most,
            "reached": self.reached,
            "unit": self.unit,
            "ok": self.ok,
        }


@dataclass(slots=True)
class Row:
    """One line of the table: key, the work in words, figures, wants, and further facts."""

    key: str
    work: str
    figures: Figures = field(default_factory=dict)
    wants: list[Want] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The row for the results file, with the time and the load of the machine."""
        return {
            "work": self.work,
            "date": time.strftime("%Y-%m-%d %H:%M"),
            "load_1min": round(os.getloadavg()[0], 2),
            "figures": {name: figure.as_dict() for name, figure in self.figures.items()},
            "wants": [want.as_dict() for want in self.wants],
            "facts": self.facts,
        }


def median(figures: Figures, name: str) -> float | None:
    """Median in nanoseconds, or None where the contender is missing or failed."""
    figure = figures.get(name)
    return figure.median_ns if figure and figure.runs_ns else None


def fastest(figures: Figures, *names: str) -> float | None:
    """The least of some medians."""
    known = [value for name in names if (value := median(figures, name)) is not None]
    return min(known, default=None)


def ratio(over: float | None, under: float | None) -> float | None:
    """One divided by the other, or None where either is missing."""
    return over / under if over is not None and under else None


def run(contenders: Sequence[Contender | None], rounds: int) -> Figures:
    """Race whoever is installed."""
    return race([contender for contender in contenders if contender is not None], rounds)
