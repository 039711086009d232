"""Loaders with workers, and the memory of a worker."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from asking import Setting, ask
from films import SET_FILMS, made_set
from rounds import Amount, Amounts, Measured, compared, in_turns
from rows import Row, Want

from fragdex.data import write_set

__all__ = ["loader", "memory"]

WORKERS = 4
CACHE = 64 << 20


def _set(setting: Setting) -> tuple[Path, int]:
    count = 12 if setting.quick else SET_FILMS
    path = made_set(count) / "set.parquet"
    write_set(path.parent, path)
    return path, count


def loader(setting: Setting, each: int) -> Measured:
    """Windows through torch's DataLoader, in the order of our sampler, and shuffled one by one.

    `each`: windows of a film.
    """
    path, count = _set(setting)
    windows = each * count // setting.part
    row = Row(
        f"loader-{each}",
        f"DataLoader, {WORKERS} workers, {windows:,} windows of 16 from {count} films of 320 × 180",
    )
    contenders: dict[str, dict[str, Any]] = {
        f"{who}, {order}": {"who": who, "together": together}
        for order, together in (("runs of 4", 4), ("shuffled", 1))
        for who in ("fragdex", "torchcodec")
    }
    amounts: Amounts = {}
    for name in contenders:
        amounts[name], amounts[f"{name}, processor"] = Amount("s"), Amount("s")
    busy: list[float] = []
    sums: dict[tuple[int, int], list[int]] = {}
    apart = 0
    cores = len(os.sched_getaffinity(0))

    def run(name: str, number: int) -> None:
        nonlocal apart
        job = contenders[name]
        answer = ask("loader", set=str(path), seed=number, windows=windows, workers=WORKERS, **job)
        amounts[name].runs.append(answer["seconds"])
        amounts[f"{name}, processor"].runs.append(answer["cpu"])
        apart += sums.setdefault((number, job["together"]), answer["sums"]) != answer["sums"]
        if name == "fragdex, runs of 4":
            busy.append(answer["cpu"] / answer["seconds"] / cores)

    in_turns(setting, setting.rounds, list(contenders), run)
    for order in ("runs of 4", "shuffled"):
        reached = compared(amounts, f"torchcodec, {order}", f"fragdex, {order}")
        row.wants.append(Want(f"{order}: ≥ 1.3 × torchcodec", reached, 1.3, at_most=False))
    # What who moves by the documentation has before and after.
    moved = compared(amounts, "torchcodec, shuffled", "fragdex, runs of 4")
    row.wants.append(Want("runs of 4: ≥ 1.3 × torchcodec that shuffles", moved, 1.3, at_most=False))
    row.wants += [
        Want("cores busy by it ≥ 90 %", 100 * min(busy), 90, at_most=False, unit="%"),
        Want("rounds whose tensors differ: 0", apart, 0, True, ""),
    ]
    work = [
        compared(amounts, f"torchcodec, {order}, processor", f"fragdex, {order}, processor")
        for order in ("runs of 4", "shuffled")
    ]
    row.facts["notes"] = [
        "from the start of the workers to their end, readers imported",
        "processor time of torchcodec by ours: " + ", ".join(f"{one:.2f}" for one in work),
    ]
    return row, amounts


def memory(setting: Setting) -> Measured:
    """A process that makes thousands of windows."""
    path, count = _set(setting)
    windows = 1000 if setting.quick else 10_000 // setting.part
    row = Row("memory", f"{windows:,} windows of 16, {count} films, a cache of 64 MiB")
    answer = ask("memory", set=str(path), cache=CACHE, windows=windows, every=windows // 40)
    held = [(one - answer["before"]) / 1e6 for one in answer["held"]]
    half = len(held) // 2
    grown = max(held[half:]) - max(held[:half])
    row.wants += [
        Want("≤ the cache and 150 MB", max(held), CACHE / 1e6 + 150, at_most=True, unit="MB"),
        Want("second half above the first: ≤ 5 MB", grown, 5, at_most=True, unit="MB"),
    ]
    return row, {"more than before the first window": Amount("MB", "", held)}
