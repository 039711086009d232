"""Alternating runs, and what was wanted of them."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remotion import Remotion
from rows import Row, Want
from watch import Cost, watched

__all__ = [
    "Amount", "Amounts", "Measured", "Row", "Setting", "Want", "alternate", "compared",
    "fragdex_render", "median",
]  # fmt: skip

PAGES = Path(__file__).parent / "pages"


@dataclass(frozen=True, slots=True)
class Setting:
    """How much and how long: rounds, seconds of the films, a folder for them, the peer."""

    folder: Path
    rounds: int
    quick: bool
    peer: Remotion
    pause: Path | None = None

    def wait(self) -> None:
        """Let others measure first, where the machine is shared."""
        while self.pause is not None and self.pause.exists():
            time.sleep(2)


@dataclass(slots=True)
class Amount:
    """The runs of one contender."""

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


def alternate(
    setting: Setting, contenders: Mapping[str, Callable[[], Cost]], notes: Mapping[str, str]
) -> Amounts:
    """Every contender in every round, each round beginning with the next one."""
    names = list(contenders)
    found: Amounts = {}
    for name in names:
        found[name] = Amount("s", notes.get(name, ""))
        found[f"{name}, processor"] = Amount("s")
    for number in range(setting.rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            setting.wait()
            cost = contenders[name]()
            found[name].runs.append(cost.wall)
            found[f"{name}, processor"].runs.append(cost.cpu)
    return found


def fragdex_render(page: str | Path, out: Path, *more: str, memory: bool = False) -> Cost:
    """`fragdex render` as users run it, from its start to the finished file."""
    path = PAGES / f"{page}.html" if isinstance(page, str) else page
    command = [sys.executable, "-m", "fragdex", "render", str(path), "-o", str(out), *more]
    return watched(command, memory=memory)


def median(amounts: Amounts, name: str) -> float | None:
    """Median of the rounds; None where there are none."""
    amount = amounts.get(name)
    return statistics.median(amount.runs) if amount and amount.runs else None


def compared(amounts: Amounts, slower: str, faster: str) -> float | None:
    """How many times as quick: the median of the ratios within each round."""
    if slower not in amounts or faster not in amounts:
        return None
    pairs = zip(amounts[slower].runs, amounts[faster].runs, strict=True)
    return statistics.median(one / other for one, other in pairs)
