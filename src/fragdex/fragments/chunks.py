"""Samples in chunks, many at once; in Python, where no compiled hop is."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.fragments.headers import Int64

__all__ = ["chunk_starts_plain", "places_plain"]

MAX_STRIDE = 1 << 16
"""Bytes of a row; an stsc's have 12."""


def chunk_starts_plain(
    rows: memoryview | bytes, stride: int, first: int, each: int, into: Int64
) -> int | None:
    """`hop.chunk_starts` in Python.

    >>> into = np.empty(3, np.int64)
    >>> chunk_starts_plain(bytes([0, 0, 0, 1, 0, 0, 0, 5]), 8, 0, 4, into), into.tolist()
    (15, [0, 5, 10])
    """
    count, chunks = len(rows) // stride if stride else 0, len(into)
    if not 4 <= stride <= MAX_STRIDE or not count or len(rows) % stride:
        raise ValueError("chunk_starts: impossible rows")
    if not 0 <= first <= stride - 4 or not 0 <= each <= stride - 4:
        raise ValueError("chunk_starts: a column lies outside of its row")

    def column(place: int) -> npt.NDArray[Any]:
        return np.ndarray(count, ">u4", rows, place, (stride,)).astype(np.int64)

    begin = column(first)
    if (begin[1:] < begin[:-1]).any():
        return None
    begin -= 1
    begin[0] = 0
    held = np.repeat(column(each), _gaps(np.clip(begin, 0, chunks), chunks))
    np.cumsum(held, out=into)
    total = int(into[-1]) if chunks else 0
    into -= held
    return total


def places_plain(
    size: Int64, chunk_start: Int64, chunk_offset: Int64, first: int, into: Int64
) -> bool:
    """`hop.places` in Python.

    >>> into = np.empty(3, np.int64)
    >>> places_plain(np.array([5]), np.array([0, 2]), np.array([70, 90]), 1, into), into.tolist()
    (True, [75, 90, 95])
    """
    stop = first + len(into)
    if len(chunk_start) != len(chunk_offset):
        raise ValueError("places: arguments differ in length")
    if first < 0 or stop >= 2**63 or (len(size) != 1 and len(size) < stop):
        raise ValueError("places: samples without a size")
    if not len(chunk_start) or not 0 <= chunk_start[0] <= first or chunk_start[-1] >= stop:
        raise ValueError("places: samples without a chunk")
    if (chunk_start[1:] < chunk_start[:-1]).any():
        raise ValueError("places: chunks fall back")
    if len(size) == 1:
        base = chunk_offset - chunk_start * size[0]
        running, sizes = np.arange(first, stop), size
        running *= size[0]
    else:
        begin = int(chunk_start[0])
        running = np.cumsum(size[begin:stop])
        running -= size[begin:stop]
        base = chunk_offset - running[chunk_start - begin]
        running, sizes = running[first - begin :], size[first:stop]
    np.add(np.repeat(base, _gaps(np.maximum(chunk_start, first), stop)), running, out=into)
    ends = into + sizes
    return bool((into[1:] >= ends[:-1]).all())


def _gaps(starts: Int64, stop: int) -> Int64:
    """From each start to the next, and from the last one to `stop`."""
    found = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=found[:-1])
    found[-1:] = stop - starts[-1:]
    return found
