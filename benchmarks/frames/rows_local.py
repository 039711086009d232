"""Frames and windows of local films, the first frame of a long one, and whose pixels are whose."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from asking import Setting, ask, raced, truth_of
from films import RATE, Film, made
from rounds import Amount, Amounts, Measured, compared, in_turns
from rows import Row, Want

import fragdex

__all__ = ["first", "frames", "same", "windows"]

WINDOW = 16
TWO_HOURS = 7200


def _film(setting: Setting, height: int, group: int) -> Film:
    width = height * 16 // 9
    # A picture of 1080p is decoded in the time of eight of 360p: as dense, but fewer.
    seconds = {360: 1200, 1080: 80}[height]
    return Film(width, height, group, 80 if setting.quick else seconds)


def _helped(setting: Setting, path: Path) -> tuple[str, str]:
    """A saved index, and the same as custom frame mappings."""
    index = fragdex.index(path, exact=True)
    saved, mapping = setting.folder / "a.fidx", setting.folder / "a.json"
    index.save(saved, samples=True)
    mapping.write_bytes(index.export("torchcodec"))
    return str(saved), str(mapping)


def _contenders(setting: Setting, path: Path) -> dict[str, dict[str, Any]]:
    saved, mapping = _helped(setting, path)
    return {
        "fragdex": {"who": "fragdex"},
        "fragdex, saved index": {"who": "fragdex", "options": {"index": saved}},
        "torchcodec": {"who": "torchcodec"},
        "torchcodec, its threads": {"who": "torchcodec", "options": {"threads": 0}},
        "torchcodec, mapping": {"who": "torchcodec", "options": {"mapping": mapping}},
        "decord": {"who": "decord"},
    }  # fmt: skip


def _wrong(row: Row, wrong: dict[str, int], of: int) -> None:
    row.wants.append(
        Want("wrong frames: 0", wrong["fragdex"] + wrong["fragdex, saved index"], 0, True, "")
    )
    row.facts["wrong frames"] = {"of": of, **wrong}


def _factor(amounts: Amounts, peer: str, ours: str, text: str, limit: float) -> Want:
    return Want(f"≥ {limit:g} × {text}", compared(amounts, peer, ours), limit, at_most=False)


def _processor(row: Row, amounts: Amounts) -> None:
    """A busy machine gives two threads twice as much of itself as one; work stays work."""
    ratios = ", ".join(
        f"{compared(amounts, f'{peer}, processor', 'fragdex, processor'):.2f} ({peer})"
        for peer in ("torchcodec", "decord")
    )
    row.facts["notes"] = [f"processor time by ours: {ratios}"]


def frames(setting: Setting, height: int, group: int) -> Measured:
    """Random frames by one call, each round others."""
    film = _film(setting, height, group)
    path = made(film)
    # One of thirty, as 1,000 of 20 minutes.
    span = film.frames // setting.part
    count = span // 30
    chance = random.Random(height + group)
    jobs = [
        {"what": str(path), "numbers": chance.sample(range(span), count)}
        for _ in range(setting.rounds)
    ]
    amounts, wrong = raced(setting, "frames", _contenders(setting, path), jobs, truth_of(path))
    row = Row(
        f"frames-{height}-{group}",
        f"{count:,} random frames by one call, {span // RATE} s of {film.seconds // 60} min, "
        f"{film.width} × {film.height}, groups of {group}",
    )
    row.wants += [
        _factor(amounts, "torchcodec", "fragdex", "torchcodec", 1.5),
        _factor(
            amounts, "torchcodec, mapping", "fragdex, saved index", "torchcodec with a mapping", 1.3
        ),
        _factor(amounts, "decord", "fragdex", "decord", 2),
    ]
    _processor(row, amounts)
    _wrong(row, wrong, count * setting.rounds)
    row.facts["torchcodec, its threads"] = compared(amounts, "torchcodec, its threads", "fragdex")
    return row, amounts


def windows(setting: Setting, height: int, group: int) -> Measured:
    """Windows from random places, each by a call of its own; each round others."""
    film = _film(setting, height, group)
    path = made(film)
    count = 20 if setting.quick else {360: 200, 1080: 40}[height] // setting.part
    chance = random.Random(height * group)
    jobs = [
        {
            "what": str(path),
            "count": WINDOW,
            "starts": [chance.randrange(film.frames - WINDOW) for _ in range(count)],
        }
        for _ in range(setting.rounds)
    ]
    amounts, wrong = raced(setting, "windows", _contenders(setting, path), jobs, truth_of(path))
    row = Row(
        f"windows-{height}-{group}",
        f"windows of {WINDOW} from {count:,} random places, {film.width} × {film.height}, "
        f"groups of {group}",
    )
    row.wants += [
        _factor(amounts, "torchcodec", "fragdex", "torchcodec", 1.5),
        _factor(amounts, "torchcodec, its threads", "fragdex", "torchcodec with its threads", 1.5),
    ]
    _processor(row, amounts)
    _wrong(row, wrong, count * WINDOW * setting.rounds)
    return row, amounts


def first(setting: Setting) -> Measured:
    """Open a film of two hours and take its first frame, and one in the middle."""
    film = Film(640, 360, 250, 80 if setting.quick else TWO_HOURS)
    path = made(film)
    saved, _ = _helped(setting, path)
    truth = truth_of(path)
    row = Row("first", f"first frame of a fresh film of {film.seconds // 60} min")
    contenders: dict[str, dict[str, Any]] = {
        "fragdex": {"who": "fragdex"},
        "fragdex, saved index": {"who": "fragdex", "options": {"index": saved}},
        "torchcodec": {"who": "torchcodec"},
        "torchcodec, approximate": {"who": "torchcodec", "options": {"mode": "approximate"}},
        "decord": {"who": "decord"},
    }
    amounts = {name: Amount("ms") for name in contenders}

    def run(name: str, _: int) -> None:
        answer = ask("first", what=str(path), number=0, runs=4, **contenders[name])
        assert answer["sums"] == truth[:1]
        # The first of a process meets what no other one does: pages of the libraries.
        amounts[name].runs.append(1000 * min(answer["runs"][1:]))

    in_turns(setting, setting.rounds, list(contenders), run)
    row.wants += [
        _factor(amounts, "torchcodec", "fragdex", "torchcodec, exact", 5),
        _factor(amounts, "torchcodec", "fragdex, saved index", "it with a saved index", 10),
    ]
    return row, amounts


def same(setting: Setting) -> Measured:
    """Frames of the peers beside ours, pixel by pixel."""
    row = Row("same", "the same tensors")
    amounts: Amounts = {}
    for height, group in ((360, 50), (1080, 50)):
        film = Film(height * 16 // 9, height, group, 80)
        path = made(film)
        numbers = random.Random(5).sample(range(80 * RATE), 8 if setting.quick else 24)
        for who in ("torchcodec", "decord", "PyAV"):
            answer = ask("same", who=who, what=str(path), numbers=numbers)
            name = f"{who}, {height} lines"
            amounts[name] = Amount("", "largest difference of a value", [answer["most"]])
            if who != "decord":
                row.wants.append(Want(f"{name}: no difference", answer["most"], 0, True, ""))
            row.facts[name] = answer
    return row, amounts
