"""Pictures encoded again at the ends of a clip, with the settings of the video that they come from.

Profile, level, pixel format, colour, aspect and reordering are those of the video. What is encoded
is decoded again and compared with what went in, and encoded with more bits where it is not close.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Final

import av
import numpy as np

import fragdex
from fragdex.boxes import Box, parse
from fragdex.decoding.codec import open_container
from fragdex.errors import BuildError
from fragdex.fragments.table import Int64
from fragdex.record import record
from fragdex.transcode.encoders import only_errors, repeatable, usual_class

__all__ = ["CODECS", "LEAST_PSNR", "MOST_SETS", "Seam", "SeamSettings", "encoded"]

LEAST_PSNR: Final = 40.0
"""Decibels over all planes that each picture must be close to its original."""
_PROFILES: Final = {
    66: "baseline",
    77: "main",
    100: "high",
    110: "high10",
    122: "high422",
    244: "high444",
}
"""profile_idc of AVC (ISO/IEC 14496-10, A.2) → x264's name."""
_MOST_CACHED: Final = 256 << 20
"""Bytes of pictures that are cached; more are decoded again for each pass."""
MOST_SETS: Final = 32
"""Numbers of sequence parameter sets (7.4.2.1.1)."""

Frames = Callable[[], Iterator[Any]]
"""Gives decoded pictures, PyAV's VideoFrame, in the order in which they are shown."""


@record(frozen=True, slots=True)
class SeamSettings:
    """How the video was encoded.

    Attributes:
        codec: `avc`, `hevc`, `av1` or `vp9`.
        configuration: its avcC, hvcC, av1C or vpcC.
        reordered: whether pictures are shown in another order than they are decoded in.
        rate: pictures a second.
        aspect: width of a pixel over its height.
        set_number: number of the parameter sets that are made, which no set of the video has; AVC.
        decoder: gives the decoder of the pictures; older PyAV's pictures do not say their colours.
    """

    codec: str
    configuration: Box
    reordered: bool
    rate: Fraction
    aspect: Fraction
    set_number: int = 0
    decoder: Callable[[], Any] = lambda: None


@record(frozen=True, slots=True)
class Seam:
    """Pictures that were encoded.

    Attributes:
        samples: in decode order; NAL units, where the codec has them, with a length of 4 bytes in
            front.
        order: of each sample, which of the pictures it is, counted in the order of showing.
        entry: the sample entry, as it was written.
        psnr: of the picture that differs most, in decibels.
    """

    samples: tuple[bytes, ...]
    order: Int64
    entry: Box
    psnr: float


def encoded(frames: Frames, settings: SeamSettings) -> Seam:
    """Encode pictures as one group that begins with a picture that needs no other.

    Raises:
        BuildError: the video is coded in a way that cannot be encoded, such as interlaced, or this
            PyAV has no encoder for it, or no quality comes close enough.
    """
    best, frames = 0.0, _CachedFrames(frames)
    for quality in range(_PASSES):
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


class _CachedFrames:
    """Decoded pictures, cached for the next pass over them where they are few."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._cached: list[Any] | None = None

    def __call__(self) -> Iterator[Any]:
        if self._cached is not None:
            yield from self._cached
            return
        cached, size = [], 0
        for frame in self._frames():
            size += sum(plane.buffer_size for plane in frame.planes)
            if size <= _MOST_CACHED:
                cached.append(frame)
            else:
                cached.clear()
            yield frame
        self._cached = cached or None


def _file(frames: Frames, settings: SeamSettings, quality: int) -> bytes:
    """The pictures as an MP4, each a tick after the one before."""
    file = io.BytesIO()
    stream: Any = None
    try:
        with av.open(file, "w", format="mp4") as container:
            for number, frame in enumerate(frames()):
                if stream is None:
                    stream = _stream(container, frame, settings, quality)
                frame.pts, frame.time_base = number, 1 / settings.rate
                frame.pict_type = av.video.frame.PictureType.I if not number else 0
                container.mux(stream.encode(frame))
            if stream is None:
                raise BuildError("the pictures at the cut cannot be decoded")
            container.mux(stream.encode(None))
    except av.FFmpegError as error:
        raise BuildError(
            f"the encoder of {settings.codec} refuses the pictures at the cut ({error.strerror})",
            advice="cut without --smart",
        ) from error
    finally:
        usual_class()
    return file.getvalue()


def _stream(container: Any, frame: Any, settings: SeamSettings, quality: int) -> Any:
    if frame.interlaced_frame:
        raise BuildError("the pictures at the cut are interlaced", advice="cut without --smart")
    encoder = _encoder(settings.codec, frame.format.name)
    only_errors()
    options = encoder.options(settings) | {"crf": str(encoder.qualities[quality])}
    stream = container.add_stream(encoder.name, rate=settings.rate, options=options)
    stream.width, stream.height, stream.pix_fmt = frame.width, frame.height, frame.format.name
    context = stream.codec_context
    context.time_base = stream.time_base = 1 / settings.rate
    context.gop_size = 100_000
    context.bit_rate = 0  # else FFmpeg's usual one holds next to the quality
    context.sample_aspect_ratio = settings.aspect
    for attribute in ("color_range", "color_primaries", "color_trc", "colorspace"):
        says = frame if hasattr(frame, attribute) else settings.decoder()
        setattr(context, attribute, getattr(says, attribute))
    return stream


def _avc(settings: SeamSettings) -> dict[str, str]:
    profile = int(settings.configuration["AVCProfileIndication"])
    level = int(settings.configuration["AVCLevelIndication"])
    if profile not in _PROFILES:
        raise BuildError(
            f"AVC of profile {profile} cannot be encoded", advice="cut without --smart"
        )
    params = (
        f"sps-id={settings.set_number}:bframes={2 if settings.reordered else 0}:b-pyramid=none"
        ":open-gop=0:scenecut=0:keyint=infinite:threads=2:cabac=1:deblock=0,0"
        f":level={level / 10:g}"
    )
    options = {"preset": "ultrafast", "profile": _PROFILES[profile], "x264-params": params}
    return repeatable(options)


def _hevc(settings: SeamSettings) -> dict[str, str]:
    # x265 finds the least level itself; told one, it holds the bit rate of noise to that.
    params = (
        f"bframes={2 if settings.reordered else 0}:open-gop=0:scenecut=0:keyint=-1:info=0"
        ":log-level=none:frame-threads=1"
    )
    return {"preset": "ultrafast", "x265-params": params}


@record(frozen=True, slots=True)
class _Encoder:
    """An encoder of FFmpeg's libraries.

    Attributes:
        qualities: constant rate factors that are tried one after the other.
    """

    name: str
    qualities: tuple[int, ...]
    options: Callable[[SeamSettings], dict[str, str]]


_PASSES: Final = 4
_ENCODERS: Final = {
    "avc": (_Encoder("libx264", (20, 14, 8, 1), _avc),),
    "hevc": (_Encoder("libx265", (20, 14, 8, 1), _hevc),),
    "av1": (
        _Encoder(
            "libsvtav1", (20, 12, 5, 1), lambda _: {"preset": "10", "svtav1-params": "scd=0:lp=2"}
        ),
        _Encoder(
            "libaom-av1",
            (20, 12, 5, 1),
            lambda _: {"cpu-used": "6", "row-mt": "1", "lag-in-frames": "0"},
        ),
    ),
    # Without pictures that are only referred to, each picture is a frame of its own. Threads of
    # rows may give other bytes in the next run.
    "vp9": (
        _Encoder(
            "libvpx-vp9",
            (28, 16, 8, 0),
            lambda _: {
                "deadline": "realtime",
                "cpu-used": "8",
                "lag-in-frames": "0",
                "auto-alt-ref": "0",
                "row-mt": "0",
            },
        ),
    ),
}
"""Encoders of each codec; the first that is there and takes the pictures is used."""
CODECS: Final = tuple(_ENCODERS)
"""What can be encoded."""


def _encoder(codec: str, pixel_format: str) -> _Encoder:
    encoders = _ENCODERS[codec]
    present = []
    for encoder in encoders:
        try:
            formats = av.Codec(encoder.name, "w").video_formats or ()
        except ValueError:
            continue
        if any(one.name == pixel_format for one in formats):
            return encoder
        present.append(encoder.name)
    names = " or ".join(encoder.name for encoder in encoders)
    raise BuildError(
        f"no encoder here makes the pictures at the cut ({pixel_format})",
        expected=names,
        found=f"{present[0]}, which does not take {pixel_format}" if present else "none of them",
        advice="install a PyAV whose FFmpeg has one that does, or cut without --smart",
    )


def _least_psnr(data: bytes, frames: Frames) -> float:
    """Of all pictures the least likeness to their originals; 0 where there are more or fewer."""
    least = float("inf")
    with open_container(io.BytesIO(data)) as container:
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

    0 where they have different sizes.
    """
    if (one.width, one.height) != (other.width, other.height):
        return 0.0
    depth = max(component.bits for component in one.format.components)
    error = (one.to_ndarray().astype(np.float32) - other.to_ndarray()).ravel()
    mean = float(error @ error) / error.size
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
