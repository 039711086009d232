"""The samples of fragments, also where the index does not hold them and the file must be asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Protocol

import numpy as np

from fragdex.box_header import read_header
from fragdex.boxes import find, parse
from fragdex.byterange import ByteRange
from fragdex.errors import InexactIndex
from fragdex.fragments.findings import Findings
from fragdex.fragments.moof_decoder import MoofDecoder
from fragdex.fragments.movie import sample_tables
from fragdex.fragments.sample_runs import SampleRuns, read_sample_runs
from fragdex.fragments.samples import samples_of
from fragdex.fragments.table import FragmentFlags, FragmentTable, Int64, SampleTable
from fragdex.fragments.track_info import SampleDefaults
from fragdex.sources import Source

__all__ = ["RowSamples", "read_moof"]

MOST_MOOF = 64 << 20
"""Bytes of a moof; larger ones hold days of samples, or lie."""


class _Track(Protocol):
    """What is asked of a track here; `TrackIndex` is one."""

    @property
    def id(self) -> int: ...
    @property
    def fragments(self) -> FragmentTable: ...
    @property
    def has_samples(self) -> bool: ...
    def samples_of(self, start: int, stop: int) -> SampleTable: ...


class RowSamples:
    """The samples of rows of a fragment table.

    Args:
        track: of an index.
        source: the file; read where the index holds no samples: moofs of the wanted fragments, or
            the moov, once.
        init: ranges of the initialization segment.
        defaults: track_ID → what its trex says.

    >>> import fragdex
    >>> from fragdex.sources import open_source
    >>> from fragdex.testing import movie
    >>> source = open_source(movie(fragments=3, samples=5))
    >>> len(RowSamples(fragdex.index(source).track(1), source, (), {}).rows(1, 3))
    10
    """

    def __init__(
        self,
        track: _Track,
        source: Source,
        init: tuple[ByteRange, ...],
        defaults: Mapping[int, SampleDefaults],
    ) -> None:
        self._track, self._source = track, source
        self._init, self._defaults = init, defaults
        self._decoder = MoofDecoder(self._moofs)
        self._runs: SampleRuns | None = None
        # Where the index can give samples, it is asked; found out at the first question.
        self._own = track.has_samples

    def rows(self, start: int, stop: int) -> SampleTable:
        """The samples of rows `start` to `stop` (exclusive) of the fragment table.

        Raises:
            InexactIndex: neither the index nor the file tells the samples.
            TruncatedInput: the file ends within a moof that is needed.
        """
        if self._own:
            try:
                return self._track.samples_of(start, stop)
            except InexactIndex:
                self._own = False
        virtual = (self._track.fragments.flags[start:stop] & FragmentFlags.VIRTUAL) != 0
        parts = []
        for low, high in _stretches(virtual):
            part = self._of_moov if virtual[low] else self._of_moofs
            parts.append(part(start + low, start + high))
        return SampleTable.concat(parts)

    def _of_moofs(self, start: int, stop: int) -> SampleTable:
        rows = self._track.fragments.rows(slice(start, stop))
        return samples_of(self._track.id, rows, self._decoder, self._defaults)

    def _moofs(self, offsets: Int64) -> tuple[bytes, Int64]:
        parts = [read_moof(self._source, offset) for offset in offsets.tolist()]
        return b"".join(parts), np.array([len(part) for part in parts], np.int64)

    def _of_moov(self, start: int, stop: int) -> SampleTable:
        if self._runs is None:
            self._runs = self._read_runs()
        rows = self._track.fragments.rows(slice(start, stop))
        first = int(rows.sample_start[0])
        last = int(rows.sample_start[-1]) + int(rows.sample_count[-1])
        if not 0 <= first <= last <= self._runs.count:
            raise InexactIndex(
                "the moov has other samples than the index", advice="build the index again"
            )
        return self._runs.expand(first, last)

    def _read_runs(self) -> SampleRuns:
        for place in self._init:
            moov = find(parse(self._source.read(place)), "moov")
            stbl = sample_tables(moov).get(self._track.id) if moov is not None else None
            runs = None
            if stbl is not None:
                size = self._source.size
                runs = read_sample_runs(stbl, self._track.id, Findings(), file_end=size)
            if runs is not None:
                return runs
        raise InexactIndex(
            f"the samples of track {self._track.id} are in neither the index nor the moov",
            advice="build the index with exact=True",
        )


def read_moof(source: Source, offset: int) -> bytes:
    """The moof at a place.

    Raises:
        InexactIndex: there is none.
        TruncatedInput: the file ends within it.
    """
    header = read_header(source.read(ByteRange.of(offset, 8)))
    if header is None or header.type != b"moof" or not 8 <= header.size <= MOST_MOOF:
        raise InexactIndex(
            "there is no moof where the index says",
            offset=offset,
            advice="build the index again",
        )
    return source.read(ByteRange.of(offset, header.size))


def _stretches(flags: object) -> Iterator[tuple[int, int]]:
    """Places [low, high) of equal neighbours."""
    values = np.asarray(flags)
    edges = [0, *(np.flatnonzero(np.diff(values.astype(np.int8))) + 1).tolist(), len(values)]
    yield from pairwise(edges)
