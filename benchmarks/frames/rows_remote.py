"""Windows of films that are elsewhere: requests, bytes, and time, each answer 30 ms late."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from asking import HERE, Setting, ask, truth_of, wrong_of
from films import Film, made
from rounds import Amount, Amounts, Measured, compared, in_turns
from rows import Row, Want
from served import Server, range_server

import fragdex

__all__ = ["bucket", "http"]

LATE = 0.03
DRIP = (1 << 16, (1 << 16) / 20e6)
"""Bytes at a time, and the pause after them."""
WINDOW = 16
ONE_CALL, ONE_BY_ONE = "fragdex, one call", "fragdex, one by one"
BY_WINDOWS, AHEAD = "torchcodec, by windows", "torchcodec, by windows ahead"
PEERS = ("PyAV", "torchcodec", "torchcodec, approximate")


def http(setting: Setting, *, narrow: bool = False) -> Measured:
    """From a server that answers ranges; `narrow`: 20 MB/s at most on each connection."""
    path = made(_film(setting))
    row = Row("http-narrow" if narrow else "http", "HTTP, 20 MB/s" if narrow else "HTTP")
    # On a kept connection torchcodec's exact mode finds no frame once it has met the end.
    faults = {"latency_s": LATE, "http_1_0": True}
    if narrow:
        faults["drip"] = DRIP
    with range_server(path, 0, faults) as server:
        return _raced(setting, row, path, server, server.url, server.url, {})


def bucket(setting: Setting) -> Measured:
    """From a bucket; the peers have its URL."""
    path = made(_film(setting))
    row = Row("s3", "a bucket")
    with Server(HERE / "bucket.py", str(LATE), str(path)) as server:
        variables = {
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT": server.url,
            "AWS_ALLOW_HTTP": "true",
        }
        theirs = f"{server.url}/films/{path.name}"
        return _raced(setting, row, path, server, f"s3://films/{path.name}", theirs, variables)


def _film(setting: Setting) -> Film:
    return Film(640, 360, 50, 80 if setting.quick else 600)


def _raced(
    setting: Setting, row: Row, path: Path, server: Server, ours: str, theirs: str,
    variables: Mapping[str, str],
) -> Measured:  # fmt: skip
    count = 8 if setting.quick else 40 // setting.part
    frames = _film(setting).frames
    chance = random.Random(30)
    rounds = [
        [chance.randrange(frames - WINDOW) for _ in range(count)] for _ in range(setting.rounds)
    ]
    row.work = f"{count} windows of {WINDOW} from {row.work}, 30 ms late"
    truth = truth_of(path)
    groups = _Groups(path)
    jobs: dict[str, dict[str, Any]] = {
        ONE_CALL: {"task": "frames", "who": "fragdex", "what": ours},
        ONE_BY_ONE: {"task": "windows", "who": "fragdex", "what": ours},
        BY_WINDOWS: {"task": "windows", "who": "windows", "what": ours},
        AHEAD: {"task": "windows", "who": "windows-ahead", "what": ours},
        "PyAV": {"task": "windows", "who": "PyAV", "what": theirs},
        "torchcodec": {"task": "windows", "who": "torchcodec", "what": theirs},
        "torchcodec, approximate": {
            "task": "windows", "who": "torchcodec", "what": theirs,
            "options": {"mode": "approximate"},
        },
    }  # fmt: skip
    amounts: Amounts = {}
    for name in jobs:
        amounts[name] = Amount("s")
        amounts[f"{name}, requests"] = Amount("a window", "without opening")
        amounts[f"{name}, bytes"] = Amount("of the groups", "without opening")
    wrong = dict.fromkeys(jobs, 0)

    def run(name: str, number: int) -> None:
        starts = rounds[number]
        job = {**jobs[name], "count": WINDOW, "variables": variables}
        server.counted()
        ask(**{**job, "task": "windows", "starts": []})
        opening = server.counted()
        numbers = np.concatenate([np.arange(one, one + WINDOW) for one in starts]).tolist()
        answer = ask(**job, starts=starts, numbers=numbers)
        whole = server.counted()
        amounts[name].runs.append(answer["seconds"])
        amounts[f"{name}, requests"].runs.append((whole[0] - opening[0]) / count)
        size = (whole[1] - opening[1]) / groups.bytes(starts)
        amounts[f"{name}, bytes"].runs.append(size)
        amounts[name].note = f"opening: {opening[0]} requests, {opening[1]:,} bytes"
        wrong[name] += wrong_of(answer, truth)

    in_turns(setting, setting.rounds, list(jobs), run)
    for name in (ONE_CALL, ONE_BY_ONE):
        asked = max(amounts[f"{name}, requests"].runs)
        size = max(amounts[f"{name}, bytes"].runs)
        row.wants += [
            Want(f"{name}: ≤ 2 requests a window", asked, 2, True, ""),
            Want(f"{name}: bytes ≤ 1.05 × those of the groups", size, 1.05, True),
        ]
    row.wants += [
        Want(f"one call ≥ 5 × {peer}", compared(amounts, peer, ONE_CALL), 5, False)
        for peer in PEERS
    ]
    row.wants.append(
        Want(f"{AHEAD} ≥ 5 × torchcodec", compared(amounts, "torchcodec", AHEAD), 5, False)
    )
    for name in (BY_WINDOWS, AHEAD):
        asked = max(amounts[f"{name}, requests"].runs)
        row.wants.append(Want(f"{name}: ≤ 1.1 requests a window", asked, 1.1, True, ""))
    ours_wrong = sum(wrong[name] for name in (ONE_CALL, ONE_BY_ONE, BY_WINDOWS, AHEAD))
    row.wants.append(Want("wrong frames: 0", ours_wrong, 0, True, ""))
    row.facts["wrong frames"] = {"of": count * WINDOW * setting.rounds, **wrong}
    row.facts["one by one"] = {peer: compared(amounts, peer, ONE_BY_ONE) for peer in PEERS}
    return row, amounts


class _Groups:
    """How many bytes the groups of windows have."""

    def __init__(self, path: Path) -> None:
        film = fragdex.Frames(path)
        self._syncs = film.key_frames
        samples = film.track.samples
        ends = np.flatnonzero(samples.sync)
        self._sizes = np.add.reduceat(samples.size, ends)

    def bytes(self, starts: list[int]) -> int:
        """Of all groups that these windows touch, each counted once."""
        touched: set[int] = set()
        for start in starts:
            first, last = np.searchsorted(self._syncs, (start, start + WINDOW - 1), "right") - 1
            touched |= set(range(int(first), int(last) + 1))
        return int(self._sizes[sorted(touched)].sum())
