"""What `fragdex render` does around a film: check, estimate, preview, contact sheet, caps."""

from __future__ import annotations

import errno
import os
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args

import typer

from fragdex.cli.output import json_line, part_progress, say, validate_folder
from fragdex.cli.render_fields import tell_notes
from fragdex.errors import FragdexError
from fragdex.record import record

if TYPE_CHECKING:
    from fragdex.rendering.lint import Linted
    from fragdex.rendering.outputs import Still
    from fragdex.rendering.pool import PageSource
    from fragdex.rendering.spec import RenderSpec

Tool = Callable[[str, "PageSource", "RenderSpec", bool], int]
"""Name of the page, page, video, whether JSON is wanted → the exit code."""

Check = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Only check: draw a few frames twice, and report what would go wrong."
    ),
]
ContactSheet = Annotated[
    str | None,
    typer.Option(
        "--contact-sheet",
        metavar="CxR",
        help="Make one picture with a grid of frames in columns and rows, with their times.",
    ),
]
Estimate = Annotated[
    bool,
    typer.Option(
        "--estimate",
        help="Only estimate: draw a few frames, and report the time, memory and disk needed.",
    ),
]
Preview = Annotated[
    bool, typer.Option("--preview", help="Only show it in a browser, as it would be drawn.")
]
Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        min=0,
        max=65535,
        metavar="N",
        help="Listen on this port: for the preview, on loopback.",
        show_default="any free one",
    ),
]
MaxSeconds = Annotated[
    float | None,
    typer.Option(
        "--max-seconds", min=0.1, metavar="S", help="Stop what takes longer, or is expected to."
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        min=0.1,
        metavar="S",
        help="The same for processor time of browsers and encoders together.",
    ),
]
_MOST: Final = 400


def tool_of(
    output: str | None,
    quality: int | None,
    jobs: int | None,
    slices: int | None,
    *,
    check: bool,
    contact_sheet: str | None,
    estimate: bool,
    preview: bool,
    port: int | None,
) -> Tool | None:
    """The tool that is requested; None: the video itself.

    Raises:
        typer.BadParameter: several are, or one that does not go with the output.
    """
    given = {
        "--dry-run": check,
        "--contact-sheet": contact_sheet is not None,
        "--estimate": estimate,
        "--preview": preview,
    }
    names = [name for name, is_asked in given.items() if is_asked]
    if len(names) > 1:
        raise typer.BadParameter(f"{' and '.join(names)} do not go together")
    if contact_sheet is not None:
        return _sheet_of(output, quality, contact_sheet)
    if names and output is not None:
        raise typer.BadParameter(f"{names[0]} and -o do not go together")
    if names and quality is not None:
        raise typer.BadParameter(f"{names[0]} and --quality do not go together")
    if port is not None and not preview:
        raise typer.BadParameter("--port is for --preview")
    if preview:
        return partial(preview_page, port or 0)
    if estimate:
        return partial(estimate_page, jobs, slices)
    return check_page if check else None


def _sheet_of(output: str | None, quality: int | None, grid: str) -> Tool:
    from fragdex.rendering.outputs import CONTAINERS, Image, Still

    match = re.fullmatch(r"([1-9]\d{0,2})[xX×]([1-9]\d{0,2})", grid)
    if match is None or (columns := int(match[1])) * (rows := int(match[2])) > _MOST:
        raise typer.BadParameter(
            f"--contact-sheet {grid}: columns and rows are expected, such as 4x4, of at most"
            f" {_MOST} frames"
        )
    stills = {end: one for one in get_args(Image) for end in CONTAINERS[one].suffixes}
    container = None if output is None else stills.get(Path(output).suffix.lower())
    if output is None or container is None:
        raise typer.BadParameter(f"--contact-sheet: -o is needed, ending in {', '.join(stills)}")
    still = Still(container) if quality is None else Still(container, quality)
    try:
        still.check()
    except ValueError as error:
        raise typer.BadParameter(f"--{error}") from None
    validate_folder(output)
    return partial(_make_sheet, columns, rows, output, still)


def _make_sheet(
    columns: int, rows: int, output: str, still: Still, name: str, page: PageSource,
    spec: RenderSpec, json: bool,
) -> int:  # fmt: skip
    from fragdex.rendering.estimate import contact_sheet

    with part_progress(Path(name).name, "frames") as progress:
        sheet = contact_sheet(page, spec, columns, rows, Path(output), still, progress)
    tell_notes(sheet.notes)
    width, height = sheet.size
    if json:
        times = [round(float(frame / sheet.view.fps), 6) for frame in sheet.frames]
        facts = {"page": name, "file": output, "width": width, "height": height,
                 "frames": list(sheet.frames), "times": times}  # fmt: skip
        say(json_line(facts))
    else:
        say(f"{output}: {width}×{height}, {len(sheet.frames)} frames\n")
    return 0


FOUND: Final = 3
"""The exit code where something was found."""


def check_page(name: str, page: PageSource, spec: RenderSpec, json: bool) -> int:
    """Look at a page and print what was found.

    Args:
        name: of the page, as the user gave it.

    Returns: 0 where nothing was found, else `FOUND`.
    """
    from fragdex.rendering.lint import lint

    with part_progress(Path(name).name, "frames") as progress:
        linted = lint(page, spec, progress)
    say(json_line(_facts(name, linted)) if json else "".join(_lines(name, linted)))
    return FOUND if linted.findings else 0


def _facts(name: str, linted: Linted) -> dict[str, Any]:
    width, height = linted.view.frame if linted.view is not None else (None, None)
    findings = [
        asdict(one) | {"file": None if one.file is None else _file(name, one.file)}
        for one in linted.findings
    ]
    return {
        "page": name,
        "width": width,
        "height": height,
        "duration": None if linted.duration_ms is None else linted.duration_ms / 1000,
        "frames": len(linted.frames),
        "drawn_twice": list(linted.drawn),
        "findings": findings,
    }


def _lines(name: str, linted: Linted) -> list[str]:
    lines = []
    for one in linted.findings:
        place = "" if one.file is None else _file(name, one.file)
        place += f":{one.line}: " if one.line else ": " if place else ""
        lines.append(f"{place}{one.kind}: {one.text}\n")
    many = len(linted.findings)
    what = "nothing was found" if not many else f"{many} finding" + "s" * (many != 1)
    if linted.view is None or not linted.drawn:
        return [*lines, f"{name}: {what}\n"]
    width, height = linted.view.frame
    drawn = f"{len(linted.drawn)} of {len(linted.frames):,} frames of {width}×{height} drawn twice"
    return [*lines, f"{name}: {what}; {drawn}\n"]


def _file(name: str, file: str) -> str:
    """A file of the site as its author knows it."""
    path = Path(name)
    if name == "-" or name.startswith(("http://", "https://")):
        return file or name
    if path.is_dir():
        return str(path / (file or "index.html"))
    return str(path.parent / file) if file else name


def estimate_page(
    jobs: int | None, slices: int | None, name: str, page: PageSource, spec: RenderSpec, json: bool
) -> int:  # fmt: skip
    """Say what the video of a page needs; returns the exit code."""
    from fragdex.rendering.estimate import estimate
    from fragdex.seeking.show import byte_count

    cost = estimate(page, spec, jobs=jobs, slices=slices)
    tell_notes(cost.notes)
    width, height = cost.view.frame
    if json:
        facts = {
            "page": name,
            "width": width,
            "height": height,
            "frames": len(cost.frames),
            "frames_drawn": cost.drawn,
            "browsers": cost.browsers,
            "seconds": round(cost.seconds, 3),
            "seconds_with_one_browser": round(cost.alone_seconds, 3),
            "processor_seconds": round(cost.processor_seconds, 3),
            "memory_bytes": cost.memory_bytes,
            "film_bytes": cost.film_bytes,
            "disk_bytes": cost.disk_bytes,
        }
        say(json_line(facts))
        return 0
    many = "1 browser" if cost.browsers == 1 else f"{cost.browsers} browsers"
    alone = "" if cost.browsers == 1 else f" ({_time(cost.alone_seconds)} with one)"
    say(
        f"{name}: {len(cost.frames):,} frames of {width}×{height}: about {_time(cost.seconds)} with"
        f" {many}{alone}, {_time(cost.processor_seconds)} of processor time,"
        f" {byte_count(cost.memory_bytes)} of memory, a video of"
        f" {byte_count(cost.film_bytes)} without its sound,"
        f" {byte_count(cost.disk_bytes)} of disk meanwhile; estimated from {cost.drawn} frames\n"
    )
    return 0


def _time(seconds: float) -> str:
    """A duration, as exact as a forecast is.

    >>> _time(8.26), _time(75), _time(4000)
    ('8.3 s', '1:15 min', '1:06 h')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02} h"


def preview_page(port: int, name: str, page: PageSource, spec: RenderSpec, json: bool) -> int:
    """Show the video of a page until interrupted; returns the exit code."""
    from fragdex.rendering.preview import FilmPreview, LocalServer

    preview = FilmPreview(name, page, spec)
    try:
        server = LocalServer(preview, port)
    except OSError as error:
        preview.close()
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        raise typer.BadParameter(f"port {port} is unavailable: {error.strerror}") from None
    say(json_line({"page": name, "url": server.url}) if json
        else f"{name}: open {server.url}\nCtrl+C ends the preview.\n")  # fmt: skip
    with suppress(KeyboardInterrupt):
        server.run()
    return 0


# When the cost of a render is estimated: after so many seconds and frames, and its error.
_SEEN_SECONDS: Final = 3.0
_SEEN_FRAMES: Final = 10
_OFF: Final = 2
_LOOK_SECONDS: Final = 0.5


@record(frozen=True, slots=True)
class _Cap:
    """What may be taken, and how much was."""

    option: str
    most: float
    taken: Callable[[], float]
    unit: str

    @property
    def limit(self) -> str:
        return f"{self.option} {self.most:g}"


class Caps:
    """Tells how far a render is, and ends it when it takes too much.

    Args:
        seconds: that it may take, from now; None: as long as it does.
        cost: seconds of processor time that all of its processes may take; None: what they do.
        progress: called with frames done and frames in all.

    Raises:
        FragdexError: it took more, or would take twice as much by what was seen of it.
    """

    def __init__(
        self, seconds: float | None, cost: float | None, progress: Callable[[int, int], object]
    ) -> None:
        self._progress, self._lock = progress, threading.Lock()
        self._caps: list[_Cap] = []
        began = time.monotonic()
        if seconds is not None:
            self._caps.append(_Cap("--max-seconds", seconds, lambda: time.monotonic() - began, "s"))
        if cost is not None:
            if not os.path.exists("/proc/self/stat"):
                raise typer.BadParameter("--max-cost: this system does not tell processor time")
            from fragdex.sandbox.processes import ProcessorTime

            processor = ProcessorTime(os.getpid())
            self._caps.append(_Cap("--max-cost", cost, processor.seconds, "s of processor time"))
        self._looked = began - _LOOK_SECONDS
        self._first: tuple[float, int, list[float]] | None = None

    def __call__(self, done: int, whole: int) -> None:
        """Frames done, and frames in all."""
        self._progress(done, whole)
        with self._lock:
            now = time.monotonic()
            if not self._caps or now - self._looked < _LOOK_SECONDS:
                return
            self._looked = now
            used = [cap.taken() for cap in self._caps]
            for cap, spent in zip(self._caps, used, strict=True):
                if spent > cap.most:
                    raise FragdexError(
                        f"ended after {spent:.1f} {cap.unit}, with {done:,} of {whole:,} frames"
                        f" done ({cap.limit})"
                    )
            self._foresee(now, done, whole, used)

    def _foresee(self, now: float, done: int, whole: int, used: list[float]) -> None:
        if self._first is None:
            if done:
                self._first = now, done, used
            return
        since, first, before = self._first
        if now - since < _SEEN_SECONDS or done - first < _SEEN_FRAMES:
            return
        for cap, spent, then in zip(self._caps, used, before, strict=True):
            foreseen = spent + (whole - done) * (spent - then) / (done - first)
            if foreseen > _OFF * cap.most:
                raise FragdexError(
                    f"ended after {spent:.1f} {cap.unit}: {done:,} of {whole:,} frames were done,"
                    f" and all of them would take about {foreseen:.0f} {cap.unit} ({cap.limit})"
                )
