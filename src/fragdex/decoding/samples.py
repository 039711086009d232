"""The samples of a span of media time, also where the index holds fragments only."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from fragdex.boxes import find, parse
from fragdex.build import index as index_of
from fragdex.byterange import ByteRange
from fragdex.errors import InexactIndex
from fragdex.fragments.findings import Findings
from fragdex.fragments.sample_runs import SampleRuns, read_sample_runs
from fragdex.fragments.samples import samples_of
from fragdex.fragments.table import NULL, FragmentFlags, Int64, SampleTable
from fragdex.fragments.tracks import sample_tables
from fragdex.seeking.model import FragmentIndex, TrackIndex
from fragdex.sources import Source

__all__ = ["TrackSamples", "decodable"]

MOST_ROWS = 4096
"""Fragments whose samples are asked for at once; a hostile file may put all at one time."""
MOST_MOOF = 64 << 20
"""Bytes of a moof; larger ones hold days of samples, or lie."""
FAR = 1 << 62
"""No time lies beyond."""


def decodable(
    index: FragmentIndex, track: TrackIndex, source: Source, init: bytes | None
) -> tuple[FragmentIndex, TrackIndex]:
    """Index and track where they tell when samples are decoded, else those of the source's boxes.

    A sidx or mfra tells when fragments are shown, and may tell it of one track only.

    Raises: what indexing the source raises.
    """
    table = track.fragments
    if (table.dts != NULL).all() and not (table.flags & FragmentFlags.TIMES_GUESSED).any():
        return index, track
    index = index_of(source, exact=True, init=init)
    return index, index.periods[track.period].track(track.id)


class TrackSamples:
    """Finds samples by decode time.

    Args:
        index: of the file.
        track: one of it.
        source: the file; read where the index holds no samples: moofs of the wanted fragments, or
            the moov, once.

    >>> import fragdex
    >>> from fragdex.sources import open_source
    >>> from fragdex.testing import movie
    >>> source = open_source(movie(fragments=3, samples=5, fps=25))
    >>> index = fragdex.index(source)
    >>> found = TrackSamples(index, index.track(1), source)
    >>> [len(table) for table in found.between(0, index.track(1).timescale // 5)]
    [5]
    """

    def __init__(self, index: FragmentIndex, track: TrackIndex, source: Source) -> None:
        self._period = index.periods[track.period]
        self._track, self._source = track, source
        self._runs: SampleRuns | None = None
        # Where the index can give samples, it is asked; found out at the first question.
        self._own = track.has_samples

    def between(self, low: int, high: int) -> Iterator[SampleTable]:
        """Samples decoded from `low` (inclusive) to `high` (exclusive), in ticks of dts.

        One table for each stretch of neighbouring fragments, in file order; each sample is shown
        for at least a tick. A sample belongs here if any part of its duration does.

        Raises:
            InexactIndex: neither the index nor the file tells the samples.
            TruncatedInput: the file ends within a moof that is needed.
        """
        low, high = max(low, -FAR), min(high, FAR)
        table = self._track.fragments
        known = (table.dts != NULL) & (table.sample_count != 0)
        ends = table.dts + np.maximum(table.duration, 1)
        rows = np.flatnonzero(known & (table.dts < high) & (ends > low))[:MOST_ROWS]
        if not len(rows):
            return
        breaks = np.flatnonzero(np.diff(rows) != 1) + 1
        firsts = rows[np.append(0, breaks)].tolist()
        lasts = rows[np.append(breaks - 1, len(rows) - 1)].tolist()
        for first, last in zip(firsts, lasts, strict=True):
            samples = self.rows(first, last + 1)
            wanted = (samples.dts < high) & (samples.dts + np.maximum(samples.duration, 1) > low)
            places = np.flatnonzero(wanted)
            if len(places):
                yield samples.rows(slice(int(places[0]), int(places[-1]) + 1))

    def rows(self, start: int, stop: int) -> SampleTable:
        """The samples of rows `start` to `stop` (exclusive) of the fragment table.

        Raises: as `between`.
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
        tracks = self._period.tracks
        defaults = {t.id: t.info.defaults for t in tracks if t.info.defaults is not None}
        rows = self._track.fragments.rows(slice(start, stop))
        return samples_of(self._track.id, rows, self._moofs, defaults)

    def _moofs(self, offsets: Int64) -> tuple[bytes, Int64]:
        parts = []
        for offset in offsets.tolist():
            head = self._source.read(ByteRange.of(offset, 8))
            size = int.from_bytes(head[:4], "big")
            if head[4:] != b"moof" or not 8 <= size <= MOST_MOOF:
                raise InexactIndex(
                    "there is no moof where the index tells of one",
                    offset=offset,
                    advice="build the index again",
                )
            parts.append(self._source.read(ByteRange.of(offset, size)))
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
        for place in self._period.init:
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


def _stretches(flags: object) -> Iterator[tuple[int, int]]:
    """Places [low, high) of equal neighbours."""
    values = np.asarray(flags)
    edges = [0, *(np.flatnonzero(np.diff(values.astype(np.int8))) + 1).tolist(), len(values)]
    yield from pairwise(edges)
