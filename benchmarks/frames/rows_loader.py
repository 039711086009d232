"""Loaders with workers, and the memory of a worker."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from asking import Setting, ask
from films import SET_FILMS, made_set, many_rows
from rounds import Amount, Amounts, Measured, compared, in_turns
from rows import Row, Want

from fragdex.data import write_set

__all__ = ["epoch", "loader", "memory"]

WORKERS = 4
CACHE = 64 << 20
WAYS: dict[str, dict[str, Any]] = {
    "fragdex": {"who": "fragdex", "how": "stream"},
    "fragdex, its own loader": {"who": "fragdex", "how": "own"},
    "fragdex, collated by torch": {"who": "fragdex", "how": "items"},
    "fragdex, planes": {"who": "fragdex", "how": "stream", "options": {"format": "yuv"}},
    "torchcodec": {"who": "torchcodec", "how": "items"},
}
"""Who makes the batches, and how they come to the process that uses them."""


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
        f"{who}, {order}": {"together": together, **job}
        for order, together in (("runs of 4", 4), ("shuffled", 1))
        for who, job in WAYS.items()
        if together > 1 or who in ("fragdex", "torchcodec")
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
        if "options" not in job:
            key = (number, job["together"])
            apart += sums.setdefault(key, answer["sums"]) != answer["sums"]
        if name == "fragdex, runs of 4":
            busy.append(answer["cpu"] / answer["seconds"] / cores)

    in_turns(setting, setting.rounds, list(contenders), run)

    def reached(mine: str, theirs: str, of: str = "") -> float:
        return compared(amounts, theirs + of, mine + of)

    row.wants += [
        Want(f"{order}, {of}: ≥ 1.3 × torchcodec",
             reached(f"fragdex, {order}", f"torchcodec, {order}", end), 1.3, at_most=False)
        for order in ("runs of 4", "shuffled")
        for of, end in (("time", ""), ("processor time", ", processor"))
    ]  # fmt: skip
    # What who moves by the documentation has before and after.
    moved = reached("fragdex, runs of 4", "torchcodec, shuffled")
    row.wants += [
        Want("runs of 4: ≥ 1.3 × torchcodec that shuffles", moved, 1.3, at_most=False),
        Want("cores busy by it ≥ 90 %", 100 * min(busy), 90, at_most=False, unit="%"),
        Want("rounds whose tensors differ: 0", apart, 0, True, ""),
    ]
    others = [
        f"{who}: " + f"{reached(f'{who}, runs of 4', 'torchcodec, runs of 4', ', processor'):.2f}"
        for who in WAYS
    ]
    row.facts["notes"] = [
        "from the start of the workers to their end, readers imported; pixels copied once",
        "processor time of torchcodec, runs of 4, by that of " + "; ".join(others),
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


def epoch(setting: Setting) -> Measured:
    """Memory of a shuffled epoch of sets with a thousand to a million videos.

    The rows of a set share a few films, so that only what grows with rows differs.
    """
    counts = (1000, 10_000) if setting.quick else (1000, 10_000, 100_000, 1_000_000)
    windows = 400 if setting.quick else 4000 // setting.part
    row = Row("epoch", f"{windows:,} windows of 16 of a shuffled epoch, sets of {counts[0]:,} to "
              f"{counts[-1]:,} videos")  # fmt: skip
    amounts: Amounts = {}
    peaks, most = [], 0.0
    for count in counts:
        path = setting.folder / f"{count}.parquet"
        root = many_rows(count, path)
        answer = ask("epoch", set=str(path), root=str(root), windows=windows)
        peaks.append(answer["peak"] / 1e6)
        most = max(most, answer["requests"])
        size = path.stat().st_size / 1e6
        note = f"a file of {size:.0f} MB; {answer['windows']:,} windows; the first batch after "
        amounts[f"{count:,} videos"] = Amount("MB", note + f"{answer['open']:.1f} s", [peaks[-1]])
        path.unlink()
    row.wants += [
        Want("peak of the largest ≤ 1.1 × that of the smallest", peaks[-1] / peaks[0], 1.1, True),
        Want("reads a window < 1", most, 1, at_most=True, unit=""),
    ]
    return row, amounts
