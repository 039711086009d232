"""The cost of a video, estimated from a few of its frames; and evenly spaced frames on a sheet."""

from __future__ import annotations

import io
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Final

from fragdex.record import record
from fragdex.rendering.browser.model import Notes, PageView
from fragdex.rendering.messages import SliceMade
from fragdex.rendering.outputs import Still
from fragdex.rendering.pictures import encode_still
from fragdex.rendering.plan import OneBrowserNeeded
from fragdex.rendering.pool import PageSource, RenderProcess, drawn, evenly, film_of
from fragdex.rendering.render import divided
from fragdex.rendering.spec import RenderSpec, key_interval
from fragdex.sandbox.processes import ProcessorTime, memory_below

if TYPE_CHECKING:
    from PIL import Image


PLACES: Final = 3
"""Where in the video frames are drawn, at most."""
FRAMES: Final = 15
"""That are drawn at each place."""
ENOUGH_SECONDS: Final = 20.0
"""After which what was drawn by then has to do."""

# Where frames are cheap, whole groups of pictures follow: of a picture that stays, the first one
# costs more than a minute of the others. So many that the two at the ends, to which the encoder
# gives less than to those between, count for little.
_GROUPS: Final = 8
_MORE_SECONDS: Final = 1.0
_MEMORY_SECONDS: Final = 0.25
# Joining copies what the slices have.
_WHILE_MADE: Final = 2


@record(frozen=True, slots=True)
class Estimate:
    """What a video will cost on this machine.

    Attributes:
        view, frames: of the video.
        drawn: frames that were drawn for this.
        browsers: that are used at the same time.
        seconds: that it takes; alone_seconds: with one browser.
        processor_seconds: of all processes together; 0 where the system does not tell.
        memory_bytes: of all browsers and encoders together.
        film_bytes: of the video's pictures; disk_bytes: at most, while it is made.
        notes: what happened on the page.
    """

    view: PageView
    frames: range
    drawn: int
    browsers: int
    seconds: float
    alone_seconds: float
    processor_seconds: float
    memory_bytes: int
    film_bytes: int
    disk_bytes: int
    notes: Notes


class _Enough(Exception):
    """Enough was seen."""


def estimate(
    page: PageSource, spec: RenderSpec, *, jobs: int | None = None, slices: int | None = None
) -> Estimate:
    """Draw a few frames of a video, and say what all of it will cost.

    Args:
        jobs, slices: as of `render`.

    Raises:
        PageFailed, BrowserGone, EngineUnavailable, TooLarge: as of `render`.
        OneBrowserNeeded: the video begins within a page that needs all of its frames.
    """
    view, frames = film_of(page, spec)
    seen = _sampled(page, spec, view, frames)

    each = seen.each("seconds")

    def taken(part: range) -> float:
        return seen.start + part.start * seen.replay + len(part) * each

    parts = divided(view, frames, jobs, slices).slices
    processors = os.cpu_count() or 1
    browsers = min(jobs or processors, len(parts))
    work = sum(map(taken, parts))
    # They take turns where there are more parts than browsers, or than the machine has processors.
    seconds = max(*map(taken, parts), work / browsers, work * seen.processors / processors)
    film = round(len(frames) * seen.each("film_bytes"))
    samples = round(len(frames) * seen.each("sample_bytes"))
    return Estimate(
        view, frames, seen.drawn, browsers, seconds, taken(frames), work * seen.processors,
        seen.memory * browsers, film, _WHILE_MADE * film + samples, seen.notes,
    )  # fmt: skip


@record(frozen=True, slots=True)
class _Frame:
    """What a frame costs at one place of the video."""

    seconds: float
    film_bytes: float
    sample_bytes: float

    @classmethod
    def of(cls, one: SliceMade) -> _Frame:
        """Of a slice whose file is there."""
        samples = sum(size for _, size in one.samples.values())
        file_bytes = Path(one.path).stat().st_size - samples
        seconds = one.seconds["capture"] + one.seconds["finish"]
        return cls(*(cost / one.frames for cost in (seconds, file_bytes, samples)))


@record(slots=True)
class _Seen:
    """What frames were drawn, and what they cost.

    Attributes:
        places: a frame of each; drawn: all frames that were drawn.
        start: seconds until the first frame.
        passed: frames that were only passed by; passing: the seconds of that.
        processors: that are busy meanwhile.
        memory: bytes of all processes.
    """

    places: list[_Frame] = field(default_factory=list)
    drawn: int = 0
    start: float = 0.0
    passed: int = 0
    passing: float = 0.0
    processors: float = 0.0
    memory: int = 0
    notes: Notes = field(default_factory=Notes)

    @property
    def replay(self) -> float:
        """Seconds of a frame that is passed by."""
        return self.passing / self.passed if self.passed else 0.0

    def each(self, cost: str) -> float:
        """What a frame costs: each place represents the same part of the video."""
        return fmean(getattr(one, cost) for one in self.places)


def _sampled(page: PageSource, spec: RenderSpec, view: PageView, frames: range) -> _Seen:
    group = spec.film.gop or key_interval(view.fps)
    length = min(FRAMES, len(frames))
    long = max(length, min(len(frames) // PLACES, length + _GROUPS * group))
    seen = _Seen()
    began = looked = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="fragdex-") as folder,
        RenderProcess(page.site, outside=page.outside, limits=page.limits) as child,
    ):
        processor = ProcessorTime(child.pid)

        def check() -> None:
            nonlocal looked
            now = time.monotonic()
            if now - looked > _MEMORY_SECONDS:
                looked = now
                seen.memory = max(seen.memory, memory_below(child.pid))
            if seen.places and now - began > ENOUGH_SECONDS:
                raise _Enough

        def draw(first: int, count: int) -> SliceMade:
            one = child.draw(
                view, range(first, first + count), Path(folder), film=spec.film, check=check
            )  # fmt: skip
            seen.drawn += count
            seen.notes = one.notes
            seen.memory = max(seen.memory, memory_below(child.pid))
            seen.processors = processor.seconds() / (time.monotonic() - began)
            return one

        # a page that needs all of its frames tells by the first what they cost
        with suppress(_Enough, OneBrowserNeeded):
            stop = 0
            for first in evenly(range(frames.start, frames.stop - long + 1), PLACES):
                if first < stop:
                    continue
                one = draw(first, length)
                if not seen.places:
                    seen.start = max(0.0, time.monotonic() - began - _work(one))
                seen.passed += first - stop
                seen.passing += one.seconds["replay"]
                seen.places.append(_Frame.of(one))
                stop = first + length
                if more := _more(seen.places[-1].seconds, long - length, group):
                    seen.places[-1] = _Frame.of(draw(stop, more))
                    stop += more
    return seen


def _more(seconds: float, room: int, group: int) -> int:
    """How many more frames are drawn at a place where one takes so long: whole groups, or all."""
    most = int(min(room, _MORE_SECONDS / max(seconds, 1e-6)))
    return most if most == room else most - most % group


def _work(one: SliceMade) -> float:
    return one.seconds["replay"] + one.seconds["capture"] + one.seconds["finish"]


_WIDTH: Final = 1920
"""Pixels of a sheet, about: frames are made smaller, never larger, to fit."""
_PIXELS: Final = 32 << 20
_GAP: Final = 8
_LABEL: Final = 22
_TEXT: Final = 14
_LEAST: Final = 16
_BACK, _FORE = (24, 24, 24), (230, 230, 230)


@record(frozen=True, slots=True)
class ContactSheet:
    """A sheet that was made.

    Attributes:
        size: width and height of it, in pixels.
        view: of the video.
        frames: that are shown, row by row.
        notes: what happened on the page.
    """

    size: tuple[int, int]
    view: PageView
    frames: tuple[int, ...]
    notes: Notes


def contact_sheet(
    page: PageSource,
    spec: RenderSpec,
    columns: int,
    rows: int,
    out: Path,
    still: Still,
    progress: Callable[[int, int], object] = lambda *_: None,
) -> ContactSheet:
    """Draw frames of a video into one picture, which appears whole or not at all.

    A video of fewer frames gives fewer pictures.

    Args:
        spec: the video.
        out: the file; an existing one is replaced.
        still: how the sheet is stored.
        progress: called with frames drawn and frames to draw.

    Raises:
        PageFailed, BrowserGone, EngineUnavailable, TooLarge: as of `film_of` and `drawn`.
    """
    import numpy as np
    from PIL import Image

    view, film = film_of(page, spec)
    frames = evenly(film, columns * rows)
    columns = min(columns, len(frames))
    rows = -(-len(frames) // columns)
    width, height = _tile(view, columns, rows)
    sheet = Image.new(
        "RGB",
        (columns * (width + _GAP) + _GAP, rows * (height + _LABEL + _GAP) + _GAP),
        _BACK,
    )
    notes = Notes()
    for n, (picture, drawn_slice) in enumerate(drawn(page, view, frames)):
        left = _GAP + n % columns * (width + _GAP)
        top = _GAP + n // columns * (height + _LABEL + _GAP)
        with Image.open(io.BytesIO(picture)) as frame:
            small = frame.convert("RGB").resize((width, height), Image.Resampling.LANCZOS)
        sheet.paste(small, (left, top))
        _write(sheet, (left, top + height + 2), float(frames[n] / view.fps), frames[n], width)
        notes = drawn_slice.notes
        progress(n + 1, len(frames))
    new = out.with_name(f".{out.name}.new")
    try:
        new.write_bytes(encode_still(np.asarray(sheet), still))
        os.replace(new, out)
    finally:
        new.unlink(missing_ok=True)
    return ContactSheet(sheet.size, view, frames, notes)


def _tile(view: PageView, columns: int, rows: int) -> tuple[int, int]:
    """Width and height of a frame on the sheet."""
    width, height = view.frame
    scale = min(
        1.0,
        (_WIDTH - (columns + 1) * _GAP) / columns / width,
        (_PIXELS / (columns * rows * width * height)) ** 0.5,
    )
    return max(_LEAST, round(width * scale)), max(_LEAST, round(height * scale))


def _write(
    sheet: Image.Image, at: tuple[int, int], seconds: float, frame: int, width: int
) -> None:  # fmt: skip
    """The time of a frame, and its number where there is room."""
    from PIL import ImageDraw, ImageFont

    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(_TEXT)
    time = f"{int(seconds // 60)}:{seconds % 60:06.3f}"
    for text in (f"{time}  frame {frame}", time, f"{seconds:.1f}"):
        if draw.textlength(text, font=font) <= width:
            draw.text(at, text, fill=_FORE, font=font)
            return
