"""What the encoder takes from a film: SSIM against the frames before it, and the bytes.

SSIM is that of luma, as it was defined; that of all planes stands in the notes.
"""

from __future__ import annotations

import statistics
from fractions import Fraction
from pathlib import Path

import av
import av.filter
from measure import Amount, Measured, Row, Setting, Want, fragdex_render

__all__ = ["quality"]

# Bytes of films of one slice when this row was written.
_BYTES = {"simple": (10, 717_936), "slides": (10, 332_703), "heavy": (4, 2_774_268)}
_WANTED = 0.9995
_TICK = Fraction(1, 30)


def quality(setting: Setting) -> Measured:
    """Films as they are usually made against the same frames in FFV1, by FFmpeg's `ssim`."""
    row = Row("quality", "films of one slice beside the same frames, without loss")
    amounts: dict[str, Amount] = {}
    for page, (seconds, most) in _BYTES.items():
        films = []
        for name, more in (("film.mp4", ()), ("frames.mkv", _LOSSLESS)):
            films.append(setting.folder / name)
            fragdex_render(
                page, films[-1], "--size", "1280x720", "--duration",
                str(1 if setting.quick else seconds), "--slices", "1", *more,
            )  # fmt: skip
        values, planes = _ssim(*films)
        amounts[page] = Amount("", "SSIM of luma, frame by frame", values)
        size = films[0].stat().st_size
        ssim = statistics.mean(values)
        row.wants.append(Want(f"{page}: SSIM ≥ {_WANTED}", ssim, _WANTED, at_most=False, unit=""))
        if not setting.quick:
            share = 100 * size / most
            row.wants.append(
                Want(f"{page}: no more bytes than before", share, 100, at_most=True, unit="%")
            )
        row.facts.setdefault("notes", []).append(
            f"the {page} page: mean {ssim:.6f}, least {min(values):.6f}; all planes "
            f"{statistics.mean(planes):.6f}; {size:,} bytes"
        )
    return row, amounts


_LOSSLESS = ("--codec", "ffv1", "--pixel-format", "yuv420p")


def _ssim(film: Path, frames: Path) -> tuple[list[float], list[float]]:
    """SSIM of each frame: of luma, and of all planes."""
    graph = av.filter.Graph()
    with av.open(str(film)) as one, av.open(str(frames)) as other:
        sources = [
            graph.add_buffer(width=1280, height=720, format="yuv420p", time_base=_TICK)
            for _ in (one, other)
        ]
        compared, sink = graph.add("ssim"), graph.add("buffersink")
        for number, source in enumerate(sources):
            source.link_to(compared, 0, number)
        compared.link_to(sink)
        graph.configure()
        luma, planes = [], []
        pairs = zip(one.decode(video=0), other.decode(video=0), strict=True)
        for number, pair in enumerate(pairs):
            for source, picture in zip(sources, pair, strict=True):
                picture.pts, picture.time_base = number, _TICK
                source.push(picture)
            metadata = sink.pull().metadata
            luma.append(float(metadata["lavfi.ssim.Y"]))
            planes.append(float(metadata["lavfi.ssim.All"]))
    return luma, planes
