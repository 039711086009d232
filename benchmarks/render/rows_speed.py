"""How long renders take, beside the peer's, in one process and in two; and their memory."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from hyperframes import Hyperframes
from measure import (
    BUILD,
    PAGES,
    Amount,
    Measured,
    Row,
    Setting,
    Want,
    alternate,
    compared,
    fragdex_render,
)
from rounds import in_turns
from surroundings import browser
from watch import Cost, watched

from fragdex.indexing import native
from fragdex.rendering.browser.model import PageView
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.pictures import Pictures
from fragdex.rendering.site import Page

__all__ = [
    "against_hyperframes", "against_peer", "canvas", "memory", "pictures", "start", "two_workers",
]  # fmt: skip

# Heavy frames take a tenth of a second: fewer of them tell as much.
SECONDS = {"simple": 10, "heavy": 4, "slides": 10}
FACTORS = {"simple": 3.0, "heavy": 2.2, "slides": 12.0}
HYPERFRAMES_FACTOR = 4.0
OF_CEILING = 0.9
CANVAS_FACTOR = 3.0
PICTURE_FACTORS = {"simple": 3.5, "heavy": 1.8}
WORK = {
    "simple": "the simple page, {} s",
    "heavy": "the heavy page, {} s",
    "slides": "static slides, one a second, {} s",
}


def against_peer(setting: Setting, page: str) -> Measured:
    """`fragdex render` with its defaults against Remotion on equal content."""
    seconds = 2 if setting.quick else SECONDS[page]
    peer = setting.peer
    out = setting.folder
    contenders: dict[str, Callable[[], Cost]] = {
        "fragdex": lambda: fragdex_render(
            page, out / "a.mp4", "--size", "1280x720", "--duration", str(seconds)
        )
    }
    notes = {"fragdex": "defaults: a process for each processor"}
    if not peer.why:
        tried = peer.choose(page, out / "peer.mp4")
        contenders["Remotion"] = lambda: peer.render(page, out / "peer.mp4", 30 * seconds)
        notes["Remotion"] = f"{peer.concurrency} tabs, the better of: {tried}"
    amounts = alternate(setting, contenders, notes)
    row = Row(page, WORK[page].format(seconds))
    factor = FACTORS[page]
    reached = compared(amounts, "Remotion", "fragdex")
    row.wants.append(Want(f"≥ {factor:g} × Remotion", reached, factor, at_most=False))
    cpu = compared(amounts, "Remotion, processor", "fragdex, processor")
    row.facts["processor time of Remotion by ours"] = cpu
    row.facts["notes"] = [f"Remotion is missing: {peer.why}"] if peer.why else []
    if cpu is not None:
        row.facts["notes"].append(f"Remotion needs {cpu:.2f} times the processor time")
    return row, amounts


def against_hyperframes(setting: Setting) -> Measured:
    """`fragdex render` with its defaults against hyperframes on the same page."""
    seconds = 2 if setting.quick else 4
    peer = Hyperframes(BUILD / "hyperframes", browser())
    out = setting.folder
    row = Row("hyperframes", f"the simple page, {seconds} s, beside hyperframes")
    contenders: dict[str, Callable[[], Cost]] = {
        "fragdex": lambda: fragdex_render(
            "simple", out / "a.mp4", "--size", "1280x720", "--duration", str(seconds)
        )
    }
    notes = {"fragdex": "defaults: a process for each processor"}
    row.facts["notes"] = [f"hyperframes is missing: {peer.why}"] if peer.why else []
    if not peer.why:
        site = peer.site_of("simple", out / "site", seconds)
        contenders["hyperframes"] = lambda: peer.render(site, out / "peer.mp4")
        notes["hyperframes"] = f"{peer.version}, defaults, software alone"
        row.facts["notes"].append(
            "hyperframes draws the same film but for the page's counters of frames and of ticks"
        )
    amounts = alternate(setting, contenders, notes)
    reached = compared(amounts, "hyperframes", "fragdex")
    row.wants.append(
        Want(f"≥ {HYPERFRAMES_FACTOR:g} × hyperframes", reached, HYPERFRAMES_FACTOR, at_most=False)
    )
    return row, amounts


def two_workers(setting: Setting) -> Measured:
    """One process against two, both with capture and encoding side by side.

    The ceiling is what two would reach that did nothing twice: what one process leaves idle of the
    processors is all that there is to gain. What is to be seen is a few per cent, and so is what
    runs differ by: it takes more rounds.
    """
    if not setting.quick:
        setting = replace(setting, rounds=2 * setting.rounds - 1)
    row = Row("two-workers", "two processes against one")
    amounts: dict[str, Amount] = {}
    for page in ("simple", "heavy"):
        seconds = str(2 if setting.quick else SECONDS[page])

        def render(jobs: str, page: str = page, seconds: str = seconds) -> Cost:
            return fragdex_render(
                page, setting.folder / f"{jobs}.mp4", "--size", "1280x720", "--duration", seconds,
                "--processes", jobs, "--slices", jobs,
            )  # fmt: skip

        times = alternate(
            setting,
            {f"{page}, one": lambda r=render: r("1"), f"{page}, two": lambda r=render: r("2")},
            {},
        )
        reached = compared(times, f"{page}, one", f"{page}, two")
        busy = compared(times, f"{page}, one, processor", f"{page}, one")
        more = compared(times, f"{page}, two, processor", f"{page}, one, processor")
        assert reached is not None
        assert busy is not None
        assert more is not None
        ceiling = min(2.0, len(os.sched_getaffinity(0)) / busy)
        row.wants.append(
            Want(f"{page}: ≥ {OF_CEILING:g} of the ceiling of {ceiling:.2f} ×", reached / ceiling,
                 OF_CEILING, at_most=False, unit="of it")
        )  # fmt: skip
        row.facts.setdefault("notes", []).append(
            f"the {page} page: two are {reached:.2f} times as fast as one, which keeps {busy:.2f} "
            f"processors busy; they take {more:.2f} times its processor time"
        )
        amounts |= times
    return row, amounts


def memory(setting: Setting) -> Measured:
    """One slice of 1920 × 1080 at a time, everything counted."""
    row = Row("memory", "one slice of 1920 × 1080")
    amounts: dict[str, Amount] = {}
    for page in ("simple", "heavy"):
        cost = fragdex_render(
            page, setting.folder / "m.mp4", "--size", "1920x1080", "--duration",
            "1" if setting.quick else "3", "--processes", "1", memory=True,
        )  # fmt: skip
        amounts[page] = Amount("MB", "peak of the PSS of all processes", [cost.memory / 1e6])
        row.wants.append(Want(f"{page} < 900 MB", cost.memory / 1e6, 900, at_most=True, unit="MB"))
    return row, amounts


def pictures(setting: Setting) -> Measured:
    """A picture of the browser to the encoder's pixels, beside FFmpeg's PNG decoder and swscale."""
    row = Row("pictures", "a picture of 1280 × 720 from PNG to 4:2:0")
    amounts: dict[str, Amount] = {}
    view = PageView(1280, 720, Fraction(30))
    for page, factor in PICTURE_FACTORS.items():
        site = Page((PAGES / f"{page}.html").read_text("utf-8"))
        with Stage(site, view, sandbox=False) as stage:
            pngs = [png for i in range(12) if (png := stage.frame(i)) is not None]
        figures = {
            f"{page}, {name}": Amount("ms", "processor time of one thread")
            for name in ("fragdex", "FFmpeg")
        }

        def run(name: str, _: int, pngs: list[bytes] = pngs, figures: Any = figures) -> None:
            with _ffmpeg_alone() if name.endswith("FFmpeg") else nullcontext():
                converter = Pictures(view)
                converter.picture(pngs[0])
                began = time.thread_time()
                for png in pngs:
                    converter.picture(png)
            figures[name].runs.append(1000 * (time.thread_time() - began) / len(pngs))

        in_turns(setting, 3 * setting.rounds, list(figures), run)
        reached = compared(figures, f"{page}, FFmpeg", f"{page}, fragdex")
        row.wants.append(Want(f"{page}: ≥ {factor:g} × FFmpeg", reached, factor, at_most=False))
        amounts |= figures
    return row, amounts


@contextmanager
def _ffmpeg_alone() -> Iterator[None]:
    """Have pictures decoded and converted as where the C extension is missing."""
    compiled, native.compiled = native.compiled, None
    try:
        yield
    finally:
        native.compiled = compiled


def canvas(setting: Setting) -> Measured:
    """Pages that are one canvas: read, beside the same pages pictured, equal to the byte."""
    row = Row("canvas", "pages of one canvas, read and pictured")
    frames = 60 if setting.quick else 240
    amounts: dict[str, Amount] = {}
    for page in ("canvas", "webgl"):
        files = {way: setting.folder / f"{page}-{way}.mp4" for way in ("read", "pictured")}

        def render(way: str, page: str = page, files: Any = files) -> Cost:
            path = PAGES / f"{page}.html"
            child = Path(__file__).with_name("canvas_child.py")
            return watched([sys.executable, *map(str, (child, path, frames, files[way], way))])

        times = alternate(
            setting, {f"{page}, {way}": lambda r=render, w=way: r(w) for way in files}, {}
        )
        assert files["read"].read_bytes() == files["pictured"].read_bytes()
        reached = compared(times, f"{page}, pictured, processor", f"{page}, read, processor")
        row.wants.append(
            Want(f"{page}: ≥ {CANVAS_FACTOR:g} × less processor time", reached, CANVAS_FACTOR,
                 at_most=False)
        )  # fmt: skip
        amounts |= times
    row.facts["notes"] = ["both ways give the same file, byte for byte"]
    return row, amounts


def start(setting: Setting) -> Measured:
    """A film of three frames: the command, its process, the browser, the page, the file."""
    row = Row("start", "three frames of static slides")
    contenders = {
        "fragdex": lambda: fragdex_render(
            "slides", setting.folder / "a.mp4", "--size", "1280x720", "--duration", "0.1"
        )
    }
    return row, alternate(setting, contenders, {})
