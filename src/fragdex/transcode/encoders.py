"""Encoders of video held to what they may do: x264 to bytes that repeat, SVT-AV1 to its work."""

from __future__ import annotations

import os


def repeatable(options: dict[str, str]) -> dict[str, str]:
    """Options of x264, with those added under which the same pictures give the same bytes.

    x264's AVX-512 code for macroblock trees reads memory that nobody wrote where a row of
    macroblocks ends (seen with core 165 at 64×48, 240, 272, 330 and 496 pixels of width): about one
    video of a hundred came out with other bytes. Its AVX2 code does not, is as fast, and gives the
    bytes of every older processor, so that slices of several machines agree.
    """
    params = options.get("x264-params")
    if params is None or not _has_avx512():
        return options
    return options | {"x264-params": f"{params}:asm=avx2"}


def _has_avx512() -> bool:
    # not while a process starts that encodes nothing yet
    import numpy as np

    extensions = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return any(name == "X86_V4" or name.startswith("AVX512") for name in extensions)


def only_errors() -> None:
    """Let SVT-AV1 print errors alone; before its first encoder is opened."""
    os.environ.setdefault("SVT_LOG", "1")


def usual_class() -> None:
    """Put this thread back among those that share the processors.

    SVT-AV1 makes what calls it a real-time process where it may, and so all that this one starts.
    Only Linux has such classes for Python to see.
    """
    if hasattr(os, "sched_getscheduler") and os.sched_getscheduler(0) != os.SCHED_OTHER:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
