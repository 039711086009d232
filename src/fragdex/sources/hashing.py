"""The md5 of anything that can be opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fragdex import digest
from fragdex.byterange import ByteRange
from fragdex.sources.opening import open_source

__all__ = ["md5"]


def md5(
    what: Any,
    ranges: Iterable[ByteRange] | None = None,
    *,
    progress: Callable[[int, int | None], object] | None = None,
    **options: Any,
) -> digest.Digest:
    """Return the md5 of whatever `open_source` opens, whole or of `ranges` one after the other.

    `progress` is called after each piece with the bytes done and the bytes in all (None where a
    server does not tell); `options` are those of `open_source`. A source that was open already
    stays open. Raises what `open_source` and reading raise; TruncatedInput for ranges past the
    end.

    >>> print(md5(b"abc"))
    900150983cd24fb0d6963f7d28e17f72
    """
    source = open_source(what, **options)
    try:
        return digest.md5(source, ranges, progress)
    finally:
        if source is not what:
            source.close()
