"""The source of a clip, and how much is taken from it: samples, looks at pictures."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.errors import LimitExceeded
from fragdex.fragments.table import SampleTable
from fragdex.indexing.samples import MAX_WITHOUT_BYTES
from fragdex.seeking.model import TrackIndex
from fragdex.sources import Source

__all__ = ["FAR", "FEW_LOOKS", "LOOK_BACK", "Reader", "SampleBudget"]

LOOK_BACK = 512
"""Pictures marked sync that are looked at for one that a decoder can start at."""
LOOKS = 8 * LOOK_BACK
"""Reads of such pictures in all tracks of a clip, beside the first `FEW_LOOKS` of each track."""
FEW_LOOKS = 4
FAR = 1 << 62
"""Beyond every byte and every second of a file."""


class SampleBudget:
    """How many samples are written out for a clip: as many as its source has bytes.

    A few bytes can claim tracks of a million samples each, all in the same bytes of media data.

    >>> SampleBudget(1 << 20).left
    1310720
    """

    def __init__(self, size: int | None) -> None:
        self._size = FAR if size is None else size
        self.left = MAX_WITHOUT_BYTES + self._size

    def take(self, track: TrackIndex, start: int, stop: int, wanted: int) -> SampleTable:
        """The samples of rows `start` to `stop` (exclusive) of a track's fragments, counted.

        Of a truncated file, no further than the first row behind `wanted` that is not in it.

        Raises:
            LimitExceeded: they are too many.
            InexactIndex: they are not known.
        """
        gone = np.flatnonzero(track.fragments.data_start[wanted + 1 : stop] >= self._size)
        if len(gone):
            stop = wanted + 1 + int(gone[0])
        count = int(track.fragments.sample_count[start:stop].sum())
        if count > self.left:
            raise LimitExceeded(
                f"the tracks claim more samples than the file has bytes, track {track.id} too many",
                path="moov/trak/mdia/minf/stbl",
                expected=f"at most {self.left}",
                found=count,
                advice="take a shorter clip, or fewer tracks",
            )
        self.left -= count
        return track.samples_of(start, stop)


class Reader(Source):
    """The source of a clip, for what has to look into its media.

    Args:
        read: exactly the bytes of a range.
        size: bytes, where known.
        remote: whether reads go over a network.
        doubted: track_IDs whose sync marks an index doubts; None among them: all.

    >>> Reader(lambda part: b"abc"[part.start : part.stop], 3, False).read(ByteRange(1, 2))
    b'b'
    """

    def __init__(
        self,
        read: Callable[[ByteRange], bytes],
        size: int | None,
        remote: bool,
        doubted: Collection[int | None] = (),
    ) -> None:
        super().__init__("the source", size=size, remote=remote)
        self._read, self._doubted = read, doubted
        self.budget = SampleBudget(size)
        self.looks = LOOKS

    def worth_a_look(self, track: int) -> bool:
        """Whether to look at pictures marked sync: from afar only where there is a doubt."""
        if self.looks <= 0:
            return False
        return not self.remote or track in self._doubted or None in self._doubted

    def read_up_to(self, range: ByteRange) -> bytes:
        """Return the bytes of `range`, cut at the known size."""
        return self._read(self._spend(range))
