"""How the encoder of a film is set, so that the same pictures give the same bytes.

What decides the bytes is fixed: one thread, key frames by count alone, packets in the order in
which they are shown. All slices of a film have the same parameter sets, so that their packets
make one stream.
"""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Any, Final

from fragdex.rendering.films import Film
from fragdex.rendering.plan import key_interval

ENCODER: Final = {
    "preset": "veryfast",
    "crf": "18",
    "forced-idr": "1",
    # chromaloc 1: the middle of four pixels, which is where the conversion takes chroma from
    "x264-params": "stitchable=1:open-gop=0:scenecut=0:bframes=0:chromaloc=1",
}
"""Settings of x264 where nobody asks for more. Key frames are ordered one by one."""

_NEVER: Final = 1 << 20
_BT709, _RGB = 1, 0  # ISO/IEC 23091-2: primaries, transfer and matrix alike; the matrix of RGB
_BT2020, _PQ = 9, 16  # likewise: primaries and matrix; SMPTE ST 2084
_SRGB: Final = 13  # the transfer of what browsers paint
_LIMITED, _FULL = 1, 2  # FFmpeg's numbers of the ranges 16–235 and 0–255
RGB_FORMATS: Final = ("bgr0", "bgra")
"""Pixel formats that stay RGB."""
_X265: Final = (
    "bframes=0:open-gop=0:scenecut=0:pools=none:frame-threads=1:wpp=0:info=0:log-level=none"
)
_PRORES_ALPHA_BITS: Final = "16"


def version(film: Film) -> str:
    """What decides an encoded slice besides its pictures: libraries, settings."""
    import av

    libraries = ".".join(
        str(part)
        for name in ("libavcodec", "libswscale", "libavformat")
        for part in av.library_versions[name]
    )
    if film.is_sound:
        return "none"
    pictures = (film.video.encoder, film.format, film.gop, film.bit_rate, film.is_pq)
    return f"{libraries} {pictures} {options(film, Fraction(30))}"


def options(film: Film, fps: Fraction) -> dict[str, str]:
    """The options of a film's encoder, as FFmpeg names them."""
    if film.is_plain:
        return dict(ENCODER)
    name, video = film.video_name, film.video
    told: dict[str, str] = {}
    if film.bit_rate is None and video.crf is not None:
        told["crf"] = str(video.crf[1] if film.crf is None else film.crf)
    preset = film.preset or video.preset
    keys = film.gop or key_interval(fps)
    if name == "h264":
        told |= ENCODER | {"preset": str(preset)} | told
        if film.bit_rate is not None:
            del told["crf"]
    elif name == "hevc":
        told |= {"preset": str(preset), "x265-params": f"keyint={keys}:min-keyint={keys}:{_X265}"}
    elif name == "av1":
        told |= {"preset": str(preset), "svtav1-params": "lp=1:scd=0"}
    elif name == "vp9":
        told |= {"cpu-used": str(preset), "deadline": "good", "row-mt": "0", "lag-in-frames": "0",
                 "auto-alt-ref": "0"}  # fmt: skip
    elif name == "prores":
        profile = film.preset or ("4444" if "444" in film.format else "hq")
        told |= {"profile": str(list(video.presets).index(profile)), "vendor": "apl0"}
        if film.transparency:
            told["alpha_bits"] = _PRORES_ALPHA_BITS
    else:
        told |= {"level": "3", "slices": "4"}
    return told


def settle(context: Any, film: Film, width: int, height: int, fps: Fraction) -> None:
    """Set what options do not: size, pixels, colours, key frames."""
    if film.video_name == "av1":
        os.environ.setdefault("SVT_LOG", "1")  # errors alone
    context.width, context.height, context.pix_fmt = width, height, film.format
    context.thread_count = 1
    if film.video_name == "h264":
        # ordered one by one
        context.gop_size = _NEVER
    else:
        context.gop_size = 1 if film.video_name == "ffv1" else film.gop or key_interval(fps)
    if film.bit_rate is not None:
        context.bit_rate = film.bit_rate
    elif film.video_name == "vp9":
        context.bit_rate = 0  # else it is held to FFmpeg's usual one beside the quality
    context.color_primaries = _BT2020 if film.is_pq else _BT709
    if film.is_pq:
        context.color_range, context.colorspace, context.color_trc = _LIMITED, _BT2020, _PQ
    elif film.format in RGB_FORMATS:
        context.color_range, context.colorspace, context.color_trc = _FULL, _RGB, _SRGB
    else:
        context.color_range = _LIMITED
        context.colorspace = context.color_trc = _BT709


def usual_class() -> None:
    """Put this thread back among those that share the processors.

    SVT-AV1 makes what calls it a real-time process where it may, and so all that this one starts.
    Only Linux has such classes for Python to see.
    """
    if hasattr(os, "sched_getscheduler") and os.sched_getscheduler(0) != os.SCHED_OTHER:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
