"""Slices → an archive with a picture for each frame."""

from __future__ import annotations

import os
import zipfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, Final

from fragdex.rendering.films import Film
from fragdex.rendering.packets import pictures_of
from fragdex.rendering.rgb import pixels_of
from fragdex.rendering.stills import encode_still

__all__ = ["archive", "frame_of"]

_DIGITS: Final = 5
_MOST_AT_ONCE: Final = 8
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
    frames = 0
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as pictures:
        for data in _encoded(slices, film):
            name = f"{first + frames:0{_DIGITS}}.{film.still.container}"
            pictures.writestr(zipfile.ZipInfo(name, _DATE), data)
            frames += 1
            progress(frames)
    return frames


def _encoded(slices: Sequence[Callable[[], BinaryIO]], film: Film) -> Iterator[bytes]:
    """The pictures of slices in order; as many are compressed at once as there are processors."""
    from av.video.reformatter import VideoReformatter

    still, reformatter = film.still, VideoReformatter()
    rgb = "rgba" if still.is_clear else "rgb24"
    at_once = min(os.cpu_count() or 1, _MOST_AT_ONCE)
    before = b""
    waiting: deque[Future[bytes]] = deque()
    with ThreadPoolExecutor(at_once, "pictures") as threads:
        for picture in pictures_of(slices):
            pixels = pixels_of(reformatter.reformat(picture, format=rgb, threads=1))
            shown = pixels.tobytes()
            if shown == before:
                waiting.append(waiting[-1])
            else:
                before = shown
                waiting.append(threads.submit(encode_still, pixels, still))
            # the last one stays: the next picture may be the same
            while len(waiting) > at_once:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def frame_of(name: str) -> int:
    """The frame that a picture of an archive shows.

    >>> frame_of("00030.png")
    30
    """
    return int(name.partition(".")[0])
