"""Slices → an archive with a picture for each frame."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from fragdex.service.renders.films import Film
from fragdex.service.renders.packets import pictures_of
from fragdex.service.renders.rgb import pixels_of
from fragdex.service.renders.stills import encode_still

__all__ = ["archive", "frame_of"]

_DIGITS: Final = 5
_DATE: Final = (1980, 1, 1, 0, 0, 0)  # the first that a zip can tell: the same every time


def archive(
    slices: Sequence[Callable[[], BinaryIO]],
    out: Path,
    film: Film,
    first: int,
    progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Write the pictures of slices into a zip, uncompressed; returns how many there are.

    They are named by the frame that they show, such as `00030.png`.

    Args:
        slices: each opens a file of `Encoding` that lost nothing; in order.
        film: what each picture is.
        first: the number of the first.
    """
    from av.video.reformatter import VideoReformatter

    still, reformatter = film.still, VideoReformatter()
    rgb = "rgba" if still.is_clear else "rgb24"
    before = data = b""
    frames = 0
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as pictures:
        for picture in pictures_of(slices):
            pixels = pixels_of(reformatter.reformat(picture, format=rgb, threads=1))
            shown = pixels.tobytes()
            if shown != before:
                before, data = shown, encode_still(pixels, still)
            name = f"{first + frames:0{_DIGITS}}.{still.container}"
            pictures.writestr(zipfile.ZipInfo(name, _DATE), data)
            frames += 1
            progress(frames)
    return frames


def frame_of(name: str) -> int:
    """The frame that a picture of an archive shows.

    >>> frame_of("00030.png")
    30
    """
    return int(name.partition(".")[0])
