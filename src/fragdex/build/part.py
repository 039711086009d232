"""An exact index of a part of a fragmented file, from the moofs of that part alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fragdex.build.indexer import Indexer
from fragdex.byterange import ByteRange
from fragdex.errors import InexactIndex
from fragdex.fragments.table import FragmentFlags
from fragdex.seeking.model import FragmentIndex
from fragdex.sources import Source

__all__ = ["exact_part"]

READ_AHEAD = 1 << 14
"""Bytes asked for at least: a moof, and the header behind it."""


def exact_part(index: FragmentIndex, source: Source, part: ByteRange) -> FragmentIndex:
    """The index of the fragments in `part`, with their samples.

    What lies between the initialization segment and them is taken for free space and never read;
    numbers of samples count from the first of them, times are those of the whole file.

    Args:
        index: of the whole file; it need not be exact.
        source: the file.
        part: bytes from the start of a fragment to the end of one.

    Raises:
        InexactIndex: the fragments do not say when they are decoded, or several moovs govern them.
        MalformedBox: there is no fragment where the index says.

    >>> import fragdex
    >>> from fragdex.sources import open_source
    >>> from fragdex.testing import movie
    >>> source = open_source(movie(fragments=4, samples=5))
    >>> whole = fragdex.index(source)
    >>> second = whole.track(1).fragments.rows(slice(1, 2))
    >>> place = ByteRange.of(int(second.offset[0]), int(second.size[0]))
    >>> exact_part(whole, source, place).track(1).sample_count
    5
    """
    if len(index.periods) != 1 or not index.periods[0].init:
        raise InexactIndex(
            "parts of this file cannot be indexed", advice="build the index with exact=True"
        )
    indexer = Indexer()
    known = [*index.periods[0].init, part]
    while (need := indexer.need) is not None and need.start < part.stop:
        place = next((block for block in known if need.start < block.stop), part)
        if need.start < place.start:
            indexer.feed(_free(place.start - need.start), need.start)
            continue
        wanted = ByteRange(need.start, max(need.stop, need.start + READ_AHEAD))
        read = source.read(ByteRange(wanted.start, min(wanted.stop, place.stop)))
        indexer.feed(read, need.start)
    made = indexer.finish(part.stop)
    flags = [track.fragments.flags for track in made.tracks]
    if _any(flags, FragmentFlags.NO_TFDT):
        raise InexactIndex(
            "fragments have no decode times, so all fragments before them are needed",
            advice="build the index with exact=True",
        )
    made.source = index.source
    return made


def _free(size: int) -> bytes:
    """The header of a box of so many bytes that nobody looks into."""
    if size >> 32:
        return b"\0\0\0\1free" + size.to_bytes(8, "big")
    return size.to_bytes(4, "big") + b"free"


def _any(flags: Sequence[np.ndarray], flag: FragmentFlags) -> bool:
    return any(bool((column & flag).any()) for column in flags)
