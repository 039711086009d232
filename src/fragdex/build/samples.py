"""Where the samples of an index come from when they are asked for.

Every loader here is a value: it can be pickled, and takes along the bytes it reads from, which are
the smallest exact form of the samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fragdex.fragments import hop
from fragdex.fragments.moof_decoder import MoofDecoder
from fragdex.fragments.sample_runs import SampleRuns
from fragdex.fragments.samples import samples_of
from fragdex.fragments.table import FragmentTable, Int64, SampleTable
from fragdex.fragments.track_info import SampleDefaults
from fragdex.seeking.model import SampleLoader
from fragdex.sources import give_back

__all__ = ["BothSamples", "FragmentSamples", "MoofStore"]

MANY = 1 << 10
"""Moofs read again together, above which the pages around them are given back."""


class MoofStore:
    """Bytes of moofs by their offsets in the file, from the buffers that hold them.

    Pickled or copied deeply, it holds the moofs alone, and no other byte of the file.

    >>> store = MoofStore(np.array([40]), np.array([4]), [(memoryview(b"..moof.."), np.array([2]))])
    >>> store(np.array([40]))
    (b'moof', array([4]))
    """

    def __init__(
        self, offsets: Int64, sizes: Int64, buffers: list[tuple[memoryview, Int64]]
    ) -> None:
        self._offsets, self._sizes, self._buffers = offsets, sizes, buffers
        counts = [len(places) for _, places in buffers]
        self._edges = np.cumsum(counts) if counts else np.zeros(0, np.int64)

    def __call__(self, wanted: Int64) -> tuple[bytes, Int64]:
        """The moofs at these offsets, which must rise: their bytes joined, and the size of each."""
        index = np.searchsorted(self._offsets, wanted)
        parts = []
        owner = np.searchsorted(self._edges, index, side="right")
        # Rows rise with their moofs, so that each buffer is asked once.
        edges = np.flatnonzero(np.diff(owner, prepend=-1, append=-1)).tolist()
        for start, stop in pairwise(edges):
            number, mine = int(owner[start]), index[start:stop]
            buffer, places = self._buffers[number]
            first = int(self._edges[number - 1]) if number else 0
            parts.append(hop.join(buffer, places[mine - first], self._sizes[mine]))
            if len(mine) > MANY:
                give_back(buffer)
        return b"".join(parts), self._sizes[index]

    def __reduce__(self) -> tuple[object, ...]:
        count = sum(len(places) for _, places in self._buffers)
        offsets, sizes = self._offsets[:count], self._sizes[:count]
        return _joined, (offsets, sizes, self(offsets)[0])


def _joined(offsets: Int64, sizes: Int64, data: bytes) -> MoofStore:
    places = np.cumsum(sizes) - sizes
    return MoofStore(offsets, sizes, [(memoryview(data), places)])


@dataclass(frozen=True, slots=True)
class FragmentSamples:
    """The samples of fragments, from their moofs.

    Attributes:
        track: track_ID.
        fragments: rows of that track.
        moofs: decodes them; one for all tracks of a file.
        defaults: what the trex of each track says.
    """

    track: int
    fragments: FragmentTable
    moofs: MoofDecoder
    defaults: Mapping[int, SampleDefaults]

    def __call__(self, start: int, stop: int) -> SampleTable:
        """Of rows start to stop (exclusive)."""
        rows = self.fragments.rows(slice(start, stop))
        return samples_of(self.track, rows, self.moofs, self.defaults)


@dataclass(frozen=True, slots=True)
class BothSamples:
    """Samples of virtual fragments from the moov, of those behind them from their moofs.

    Attributes:
        runs: what the moov says.
        sample_start, sample_count: of the virtual fragments.
        rest: the samples of the others, whose rows count from 0.
    """

    runs: SampleRuns
    sample_start: Int64
    sample_count: Int64
    rest: SampleLoader

    def __call__(self, start: int, stop: int) -> SampleTable:
        """Of rows start to stop (exclusive)."""
        n = len(self.sample_start)
        parts = []
        if start < min(stop, n):
            last = min(stop, n) - 1
            end = int(self.sample_start[last] + self.sample_count[last])
            parts.append(self.runs.expand(int(self.sample_start[start]), end))
        if stop > n:
            parts.append(self.rest(max(start, n) - n, stop - n))
        return SampleTable.concat(parts)
