"""x264, held to code that gives the same bytes in every run."""

from __future__ import annotations


def repeatable(options: dict[str, str]) -> dict[str, str]:
    """Options of x264, with those added under which the same pictures give the same bytes.

    x264's AVX-512 code for macroblock trees reads memory that nobody wrote where a row of
    macroblocks ends (seen with core 165 at 64×48, 240, 272, 330 and 496 pixels of width): about one
    video of a hundred came out with other bytes. Its AVX2 code does not, is as fast, and gives the
    bytes of every older processor, so that slices of several machines agree.

    >>> repeatable({"crf": "18"})
    {'crf': '18'}
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
