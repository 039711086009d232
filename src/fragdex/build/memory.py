"""Memory that is freed and asked for again while an index is built."""

from __future__ import annotations

from functools import cache

__all__ = ["keep_freed"]

LARGE = (32 << 20) - (1 << 13)
"""Bytes of a block just below the size from which glibc learns nothing any more."""


@cache
def keep_freed() -> None:
    """Let the C library keep freed memory for the next column; once in a process is enough.

    glibc's malloc gives what is freed back to the system at once, until it has seen a large block
    come and go (mallopt(3), M_MMAP_THRESHOLD). Columns of a megabyte then cost a page fault every
    4 KiB, again and again: up to two thirds of the time of an index. One large block is asked for
    and freed; none of it is touched. Elsewhere than with glibc nothing changes.

    >>> keep_freed()
    """
    bytes(LARGE)
