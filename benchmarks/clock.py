"""Alternating runs: every contender in every round, so that a slow minute hits all of them."""

from __future__ import annotations

import gc
import json
import os
import re
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PATIENCE_S = 300  # the slowest run seen is 50 s: pymp4 on 138,000 moofs


class PeerFailed(Exception):
    """A contender broke down or gave a wrong answer; it leaves the race, the others go on."""


def _last_words(text: str) -> str:
    """The last line of what a peer said, without the folders of this machine."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return re.sub(r"(/[\w.+-]+)+/", "", lines[-1])[:300] if lines else "it said nothing"


@dataclass(frozen=True, slots=True)
class Contender:
    """Somebody who does the work once when called and says in how many nanoseconds.

    `once` gives a mapping because the floor has two ways to the same end. `rounds` is None for
    whoever takes part in each round; `note` tells what exactly is under the clock.
    """

    name: str
    once: Callable[[], Mapping[str, int]]
    rounds: int | None = None
    note: str = ""
    close: Callable[[], None] = lambda: None


@dataclass(slots=True)
class Figure:
    """The runs of one contender."""

    note: str = ""
    runs_ns: list[int] = field(default_factory=list)
    failed: str | None = None

    @property
    def median_ns(self) -> float:
        """Median of all rounds."""
        return statistics.median(self.runs_ns)

    def as_dict(self) -> dict[str, Any]:
        """The figure for the results file."""
        if not self.runs_ns:
            return {"note": self.note, "failed": self.failed}
        return {
            "median_ns": round(self.median_ns),
            "min_ns": min(self.runs_ns),
            "max_ns": max(self.runs_ns),
            "rounds": len(self.runs_ns),
            "note": self.note,
            "runs_ns": self.runs_ns,
        }


Figures = dict[str, Figure]


def in_process(
    name: str, work: Callable[[], object], *, rounds: int | None = None, note: str = ""
) -> Contender:
    """A contender in this process.

    What the work gives is dropped inside the clock. Who takes part in each round runs twice and
    the second run counts: the contender before has left the processor's caches cold, and the
    floor is treated alike.
    """

    def once() -> Mapping[str, int]:
        if rounds is None:
            work()
        gc.collect()
        began = time.perf_counter_ns()
        work()
        return {name: time.perf_counter_ns() - began}

    return Contender(name, once, rounds, note)


def process(
    name: str, command: Sequence[str], *, rounds: int | None = None, note: str = ""
) -> Contender:
    """A contender that is a whole process, its start included; its output goes nowhere."""

    def once() -> Mapping[str, int]:
        began = time.perf_counter_ns()
        done = subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
        )
        ns = time.perf_counter_ns() - began
        if done.returncode:
            raise PeerFailed(_last_words(done.stderr.decode(errors="replace")))
        return {name: ns}

    return Contender(name, once, rounds, note)


def worker(
    name: str,
    command: Sequence[str],
    *,
    samples: int,
    rounds: int | None = None,
    note: str = "",
    warm: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Contender:
    """A contender in a process that stays, with its own clock: a line in, a line of JSON out.

    With `warm` the first run of the process does not count: a compiling engine learns in it.
    """
    running: list[subprocess.Popen[str]] = []

    def ask() -> dict[str, int]:
        if not running:
            surroundings = {**os.environ, **(environment or {})}
            running.append(
                subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    env=surroundings,
                )
            )
        peer = running[0]
        assert peer.stdin
        assert peer.stdout
        assert peer.stderr
        try:
            peer.stdin.write("\n")
            peer.stdin.flush()
        except BrokenPipeError:
            raise PeerFailed(_last_words(peer.stderr.read())) from None
        if not select.select([peer.stdout], [], [], PATIENCE_S)[0]:
            raise PeerFailed(f"no answer in {PATIENCE_S} s")
        line = peer.stdout.readline()
        if not line:
            raise PeerFailed(_last_words(peer.stderr.read()))
        answer: dict[str, int] = json.loads(line)
        if answer["samples"] != samples:
            raise PeerFailed(f"it saw {answer['samples']} samples, there are {samples}")
        return answer

    def once() -> Mapping[str, int]:
        if rounds is None or (warm and not running):
            ask()
        return {name: ask()["ns"]}

    def close() -> None:
        for peer in running:
            peer.kill()
            peer.communicate()

    return Contender(name, once, rounds, note, close)


def race(contenders: Sequence[Contender], rounds: int) -> Figures:
    """Run the contenders in turn, each round beginning with the next one; return their figures."""
    figures: Figures = {}
    active = list(contenders)
    for number in range(rounds):
        turn = number % len(active) if active else 0
        for contender in active[turn:] + active[:turn]:
            wanted = min(contender.rounds or rounds, rounds)
            # Fewer rounds are spread evenly over the race.
            if (number + 1) * wanted // rounds == number * wanted // rounds:
                continue
            try:
                for name, ns in contender.once().items():
                    figures.setdefault(name, Figure(contender.note)).runs_ns.append(ns)
            except PeerFailed as failure:
                active.remove(contender)
                figures[contender.name] = Figure(contender.note, failed=str(failure))
                print(f"    {contender.name} failed: {failure}", file=sys.stderr, flush=True)
    for contender in contenders:
        contender.close()
    return figures
