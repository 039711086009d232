"""Alternating runs, and what was wanted of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from remotion import Remotion
from rounds import Amount, Amounts, Measured, Polite, compared, in_turns
from rows import Row, Want
from watch import Cost, watched

__all__ = [
    "BUILD", "PAGES", "Amount", "Amounts", "Measured", "Row", "Setting", "Want", "alternate",
    "compared", "fragdex_render",
]  # fmt: skip

PAGES = Path(__file__).parent / "pages"
BUILD = Path(__file__).parents[1] / "build"
"""What is made and installed; ignored."""


@dataclass(frozen=True, slots=True)
class Setting(Polite):
    """How much and how long: a folder for films, rounds, whether films are short, the peer."""

    folder: Path
    rounds: int
    quick: bool
    peer: Remotion


def alternate(
    setting: Setting, contenders: Mapping[str, Callable[[], Cost]], notes: Mapping[str, str]
) -> Amounts:
    """Every contender in every round, each round beginning with the next one."""
    amounts: Amounts = {}
    for name in contenders:
        amounts[name] = Amount("s", notes.get(name, ""))
        amounts[f"{name}, processor"] = Amount("s")

    def run(name: str, _: int) -> None:
        cost = contenders[name]()
        amounts[name].runs.append(cost.wall)
        amounts[f"{name}, processor"].runs.append(cost.cpu)

    in_turns(setting, setting.rounds, list(contenders), run)
    return amounts


def fragdex_render(page: str | Path, out: Path, *more: str, memory: bool = False) -> Cost:
    """`fragdex render` as users run it, from its start to the finished file."""
    path = PAGES / f"{page}.html" if isinstance(page, str) else page
    command = [sys.executable, "-m", "fragdex", "render", str(path), "-o", str(out), *more]
    return watched(command, memory=memory)
