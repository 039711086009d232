"""Alternating runs of servers, and what was wanted of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import load
from processes import Server
from rounds import Amount, Amounts, Measured, Polite, compared, in_turns
from rows import Row, Want

__all__ = [
    "Amount", "Amounts", "Measured", "Row", "Setting", "Want", "alternate", "by_processor",
    "compared", "loaded",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Setting(Polite):
    """How much and how long: bytes of the large file, rounds, seconds of each run."""

    data: Path
    size: int
    rounds: int
    seconds: float
    uploads: int = 200
    small_files: int = 300


def alternate(
    setting: Setting, contenders: Mapping[str, tuple[Amount, Callable[[int], float]]]
) -> Amounts:
    """Every contender in every round, each round beginning with the next one."""

    def run(name: str, number: int) -> None:
        amount, work = contenders[name]
        amount.runs.append(work(number))

    in_turns(setting, setting.rounds, list(contenders), run)
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
        done = load.ask(target, setting.seconds)
        if done.wrong:
            raise SystemExit(f"{target.path}: {done.wrong} of {done.requests} were not answered")
        return done.per_second

    return Amount("/s", note), work


def by_processor(
    setting: Setting, server: Server, target: load.Target, note: str = ""
) -> tuple[Amount, Callable[[int], float]]:
    """A contender of `loaded`, by the requests that a second of its processor answers."""

    def work(number: int) -> float:
        before = server.busy_s()
        done = load.ask(target, setting.seconds)
        if done.wrong:
            raise SystemExit(f"{target.path}: {done.wrong} of {done.requests} were not answered")
        return done.requests / (server.busy_s() - before)

    return Amount("/s of processor", note), work
