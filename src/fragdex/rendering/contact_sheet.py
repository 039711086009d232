"""Evenly spaced frames of a video in a grid, with their times."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fragdex.rendering.browser.model import Notes, PageView
from fragdex.rendering.outputs import Still
from fragdex.rendering.pictures import encode_still
from fragdex.rendering.pool import PageSource, drawn, evenly, film_of
from fragdex.rendering.spec import RenderSpec

if TYPE_CHECKING:
    from PIL import Image

_WIDTH: Final = 1920
"""Pixels of a sheet, about: frames are made smaller, never larger, to fit."""
_PIXELS: Final = 32 << 20
_GAP: Final = 8
_LABEL: Final = 22
_TEXT: Final = 14
_LEAST: Final = 16
_BACK, _FORE = (24, 24, 24), (230, 230, 230)


@dataclass(frozen=True, slots=True)
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
