"""Pages made with libraries, by what browsers bring, and by what a page keeps: right, and again.

The pages and what they show are those of the tests (tests/service/renders).
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from measure import Measured, Row, Setting, Want

from fragdex.rendering.lint import lint
from fragdex.rendering.outputs import Film
from fragdex.rendering.pool import PageSource
from fragdex.rendering.render import render
from fragdex.rendering.site import Site
from fragdex.rendering.spec import RenderSpec

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from rendering.libraries import moments
from rendering.libraries.lanes import LIBRARIES, Lanes
from rendering.pages import looking

__all__ = ["again", "pages"]

_SMALL = RenderSpec(320, 180, Fraction(30), 1000, film=Film("mkv", codec="ffv1"))
_AGAIN = ((1, False), (3, False), (7, True), (3, True), (1, True))
"""Slices of each run, and whether the processors are taken meanwhile."""
_QUICK_AGAIN = ((1, False), (3, True))
_PARTS = ((1, 1), (3, 2), (7, 2))
"""Slices, and processes that make them."""

Wrong = Callable[[Path, Path], set[int]]
"""A film and that of one browser → the frames that show something else than they should."""


@dataclass(frozen=True, slots=True)
class _Page:
    site: Site
    wanted: RenderSpec
    wrong: Wrong
    by_chance: bool = False


def pages(setting: Setting) -> Measured:
    """What each frame shows, alone and in slices."""
    row = Row("pages", "pages of libraries, of what browsers bring, and of what pages keep")
    differing: Counter[int] = Counter()
    frames = 0
    chosen = _pages(setting)
    notes = _missing()
    for name, page in chosen.items():
        setting.wait()
        alone = setting.folder / "1.mkv"
        for slices, jobs in _PARTS:
            out = setting.folder / f"{slices}.mkv"
            rendered = render(page.site, page.wanted, out, slices=slices, jobs=jobs)
            wrong = set() if page.by_chance and slices > 1 else page.wrong(out, alone)
            differing[slices] += len(wrong)
            if wrong:
                notes.append(f"{name} in {slices} slices: frames {sorted(wrong)}")
        frames += rendered.frames
    for slices, _ in _PARTS:
        text = "alone" if slices == 1 else f"in {slices} slices"
        row.wants.append(
            Want(f"{text}: wrong frames: 0", differing[slices], 0, at_most=True,
                 unit=f"of {frames:,}")
        )  # fmt: skip
    chance = [name for name, page in chosen.items() if page.by_chance]
    if chance:
        notes.append(f"compared with nothing, as no two runs need be equal: {', '.join(chance)}")
    row.facts |= {"pages": [*chosen], "notes": notes}
    return row, {}


def again(setting: Setting) -> Measured:
    """Whether runs show the same to the pixel, and whether `--dry-run` names pages that do not."""
    runs = _QUICK_AGAIN if setting.quick else _AGAIN
    row = Row("again", f"the same pages, {len(runs)} runs: in 1, 3 and 7 slices, idle and busy")
    notes = _missing()
    chosen = _pages(setting)
    shown: dict[str, Counter[str]] = {name: Counter() for name in chosen}
    for slices, busy in runs:
        with _taken() if busy else nullcontext():
            for name, page in chosen.items():
                setting.wait()
                out = setting.folder / "again.mkv"
                render(page.site, page.wanted, out, slices=slices, jobs=2)
                shown[name][_frames_hash(out)] += 1
    unnamed = 0
    for name, page in chosen.items():
        different = len(runs) - max(shown[name].values())
        if different:
            linted = lint(PageSource("", page.site, watched=True), page.wanted)
            kinds = sorted({one.kind for one in linted.findings} & {"varies", "differs"})
            unnamed += 0 if kinds else different
            verdict = f"--dry-run says {' and '.join(kinds)}" if kinds else "--dry-run says nothing"
            notes.append(f"{name}: {different} of {len(runs)} runs differ; {verdict}")
    row.wants.append(
        Want("runs that differ, and not by what `--dry-run` names: 0", unnamed, 0, at_most=True,
             unit=f"of {len(runs) * len(chosen)}")
    )  # fmt: skip
    row.facts |= {"pages": len(chosen), "notes": notes}
    return row, {}


@contextmanager
def _taken() -> Iterator[None]:
    """Every processor is busy with something else meanwhile."""
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(os.cpu_count() or 1)
    ]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _frames_hash(path: Path) -> str:
    """SHA-256 of all pictures: two files of equal pictures may differ where slices meet."""
    digest = hashlib.sha256()
    for picture in _pictures(path):
        digest.update(picture.tobytes())
    return digest.hexdigest()


def _missing() -> list[str]:
    return [] if LIBRARIES.exists() else ["the libraries are missing: ./dev setup installs them"]


def _pages(setting: Setting) -> Mapping[str, _Page]:
    """All of them, or a few."""
    by_name = {
        ", ".join(names): _of_lanes(names)
        for kind, names in moments.BATCHES.items()
        if LIBRARIES.exists() or kind == "own"
    }
    by_name["view-transition"] = _of_lanes(["view-transition"])
    by_name |= {name: _Page(looking.Moving(name), _SMALL, _of_square) for name in looking.MOVING}
    by_name |= {
        f"stateful {name}": _Page(
            looking.Stateful(name), _SMALL, _of_alone, name in looking.BY_CHANCE
        )
        for name in looking.STATEFUL
    }
    names = [*by_name]
    chosen = names[3:5] + names[5::8] if setting.quick else names
    return {name: by_name[name] for name in chosen}


def _of_lanes(names: Any) -> _Page:
    def wrong(film: Path, _: Path) -> set[int]:
        return {number for _, number, *_ in moments.wrong_frames(names, moments.pictures(film))}

    return _Page(Lanes(*names), moments.wanted(names), wrong)


def _of_square(film: Path, alone: Path) -> set[int]:
    """Frames whose square stands elsewhere, or that are not those of one browser."""
    wrong = _of_alone(film, alone)
    for number, pixels in enumerate(_pictures(film)):
        corner = looking.red_square_of(pixels)
        left = 100 * number / float(_SMALL.fps)
        if corner is None or abs(corner[0] - left) > 1 or abs(corner[1] - 40) > 1:
            wrong.add(number)
    return wrong


def _of_alone(film: Path, alone: Path) -> set[int]:
    pairs = enumerate(zip(_pictures(film), _pictures(alone), strict=True))
    return {number for number, (one, other) in pairs if not np.array_equal(one, other)}


def _pictures(path: Path) -> Iterator[np.ndarray[Any, Any]]:
    with av.open(str(path)) as film:
        for frame in film.decode(video=0):
            yield frame.to_ndarray(format="rgb24")
