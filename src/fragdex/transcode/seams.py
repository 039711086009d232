"""Pictures encoded again at the ends of a clip, with the settings of the video that they come from.

Profile, level, pixel format, colour, aspect and reordering are those of the video. What is encoded
is decoded again and compared with what went in, and encoded with more bits where it is not close.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import av
import numpy as np

import fragdex
from fragdex.boxes import Box, parse
from fragdex.errors import BuildError
from fragdex.fragments.table import Int64
from fragdex.transcode.x264 import repeatable

__all__ = ["LEAST_PSNR", "Seam", "SeamSettings", "encoded"]

LEAST_PSNR: Final = 40.0
"""Decibels over all planes that each picture must be close to its original."""
_QUALITIES: Final = (16, 11, 6, 1)
"""Constant rate factors that are tried one after the other."""
_PROFILES: Final = {
    66: "baseline",
    77: "main",
    100: "high",
    110: "high10",
    122: "high422",
    244: "high444",
}
"""profile_idc of AVC (ISO/IEC 14496-10, A.2) → x264's name."""
MOST_SETS: Final = 32
"""Numbers of sequence parameter sets (7.4.2.1.1)."""

Frames = Callable[[], Iterator[Any]]
"""Gives decoded pictures, PyAV's VideoFrame, in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class SeamSettings:
    """How the video was encoded.

    Attributes:
        codec: `avc` or `hevc`.
        configuration: the content of its avcC or hvcC.
        reordered: whether pictures are shown in another order than they are decoded in.
        rate: pictures a second.
        aspect: width of a pixel over its height.
        set_number: number of the parameter sets that are made, which no set of the video has; AVC.
    """

    codec: str
    configuration: Box
    reordered: bool
    rate: Fraction
    aspect: Fraction
    set_number: int = 0


@dataclass(frozen=True, slots=True)
class Seam:
    """Pictures that were encoded.

    Attributes:
        samples: in decode order; NAL units with a length of 4 bytes in front.
        order: of each sample, which of the pictures it is, counted in the order of showing.
        entry: the sample entry, as it was written.
        psnr: of the picture that differs most, in decibels.
    """

    samples: tuple[bytes, ...]
    order: Int64
    entry: Box
    psnr: float


def encoded(frames: Frames, settings: SeamSettings) -> Seam:
    """Encode pictures as one group that begins with an IDR picture.

    Args:
        frames: called for each pass over them.

    Raises:
        BuildError: the video is coded in a way that cannot be encoded, such as interlaced, or no
            quality comes close enough.
    """
    best = 0.0
    for quality in _QUALITIES:
        data = _file(frames, settings, quality)
        best = _least_psnr(data, frames)
        if best >= LEAST_PSNR:
            return _taken_apart(data, best)
    raise BuildError(
        "pictures at the cut cannot be encoded close enough",
        expected=f"{LEAST_PSNR} dB",
        found=f"{best:.1f} dB",
        advice="cut without --smart",
    )


def _file(frames: Frames, settings: SeamSettings, quality: int) -> bytes:
    """The pictures as an MP4, each a tick after the one before."""
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream: Any = None
        for number, frame in enumerate(frames()):
            if stream is None:
                stream = _stream(container, frame, settings, quality)
            picture = frame
            picture.pts, picture.time_base = number, 1 / settings.rate
            picture.pict_type = av.video.frame.PictureType.I if not number else 0
            container.mux(stream.encode(picture))
        if stream is None:
            raise BuildError("the pictures at the cut cannot be decoded")
        container.mux(stream.encode(None))
    return file.getvalue()


def _stream(container: Any, frame: Any, settings: SeamSettings, quality: int) -> Any:
    if frame.interlaced_frame:
        raise BuildError("the pictures at the cut are interlaced", advice="cut without --smart")
    name, options = _encoder(settings, quality)
    try:
        stream = container.add_stream(name, rate=settings.rate, options=options)
    except (av.FFmpegError, ValueError) as error:
        raise BuildError(
            f"there is no encoder {name} to make the pictures at the cut",
            advice="cut without --smart",
        ) from error
    stream.width, stream.height, stream.pix_fmt = frame.width, frame.height, frame.format.name
    context = stream.codec_context
    context.time_base = stream.time_base = 1 / settings.rate
    context.gop_size = 100_000
    context.sample_aspect_ratio = settings.aspect
    for attribute in ("color_range", "color_primaries", "color_trc", "colorspace"):
        setattr(context, attribute, getattr(frame, attribute))
    return stream


def _encoder(settings: SeamSettings, quality: int) -> tuple[str, dict[str, str]]:
    bframes = 2 if settings.reordered else 0
    if settings.codec == "hevc":
        level = int(settings.configuration["general_level_idc"])
        params = (
            f"bframes={bframes}:open-gop=0:scenecut=0:keyint=-1:info=0:log-level=none"
            f":frame-threads=1:level-idc={level / 30:g}"
        )
        return "libx265", {"preset": "medium", "crf": str(quality), "x265-params": params}
    profile = int(settings.configuration["AVCProfileIndication"])
    level = int(settings.configuration["AVCLevelIndication"])
    if profile not in _PROFILES:
        raise BuildError(
            f"AVC of profile {profile} cannot be encoded", advice="cut without --smart"
        )
    params = (
        f"sps-id={settings.set_number}:bframes={bframes}:b-pyramid=none:open-gop=0:scenecut=0"
        f":keyint=infinite:threads=2:rc-lookahead=10:level={level / 10:g}"
    )
    options = {"preset": "medium", "crf": str(quality), "profile": _PROFILES[profile]}
    return "libx264", repeatable(options | {"x264-params": params})


def _least_psnr(data: bytes, frames: Frames) -> float:
    """Of all pictures the least likeness to their originals; 0 where there are more or fewer."""
    least = float("inf")
    with av.open(io.BytesIO(data), "r") as container:
        decoded = container.decode(video=0)
        for original in frames():
            picture = next(decoded, None)
            if picture is None:
                return 0.0
            least = min(least, psnr(original, picture))
        if next(decoded, None) is not None:
            return 0.0
    return least


def psnr(one: Any, other: Any) -> float:
    """Peak signal-to-noise ratio of two pictures of one format over all their planes, in decibels.

    >>> frame = av.VideoFrame(16, 16, "yuv420p")
    >>> psnr(frame, frame)
    inf
    """
    depth = max(component.bits for component in one.format.components)
    error = one.to_ndarray().astype(np.float64) - other.to_ndarray()
    mean = float((error * error).mean())
    return float("inf") if mean == 0 else float(10 * np.log10(((1 << depth) - 1) ** 2 / mean))


def _taken_apart(data: bytes, least: float) -> Seam:
    index = fragdex.index(data, exact=True)
    table = index.track("video").samples
    rows = zip(table.offset.tolist(), table.size.tolist(), strict=True)
    order = np.empty(len(table), np.int64)
    order[np.argsort(table.cts, kind="stable")] = np.arange(len(table))
    moov = next(box for box in parse(data) if box.type == "moov")
    stsd = moov.find("trak/mdia/minf/stbl/stsd")
    if stsd is None:
        raise BuildError("the pictures at the cut have no sample entry")
    return Seam(tuple(data[at : at + size] for at, size in rows), order, stsd.children[0], least)
