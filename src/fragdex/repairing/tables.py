"""A moov that is there and wrong: its samples looked at one by one, and put where they are."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from fragdex.fragments.table import Int64, SampleTable
from fragdex.repairing.between import Even
from fragdex.repairing.film import Recovered
from fragdex.repairing.fragment_turns import Turns
from fragdex.repairing.media_data import rate_in
from fragdex.repairing.nal_units import NalUnits
from fragdex.repairing.pattern import Pattern
from fragdex.repairing.syntax import Syntax, Window
from fragdex.repairing.walk import Lost, shown_times

TRIED: Final = 64
"""Samples of a track on which a shift is tried."""
IN_A_ROW: Final = 8
"""Samples of a track that are found where the tables have them, but for a shift."""
TOGETHER: Final = 1 << 18
"""Samples that are written out at once."""
ENOUGH: Final = 0.5
"""Part of the samples that have to be where the tables say; a hole may have taken the others."""
SEARCHED: Final = 1 << 22
"""Bytes of media data in which the first samples are looked for."""
WRAP: Final = 1 << 32
STALE: Final = 8
"""One of so many pictures may be shown out of the order that it says: composition offsets stay."""
MOST_DELAYED: Final = 32
"""Pictures that one may be decoded ahead of being shown."""


class Described(NamedTuple):
    """A track that a moov describes.

    Attributes:
        pattern: it.
        syntax: how its samples are found, or why they cannot be.
        turns: the order and times of its fragments; None: as they stand.
    """

    pattern: Pattern
    syntax: Syntax | str
    turns: Turns | None = None


def batches(
    pattern: Pattern, wrapped: bool = False, turns_of: Turns | None = None
) -> Iterator[SampleTable]:
    """The samples of a track, some at a time.

    Args:
        wrapped: offsets fall back where they passed 4 GiB in 32 bits.
        turns_of: in which order its fragments follow one another, and when; None: as they stand.
    """
    track = pattern.track
    before, turns = -1, 0
    for low, high in _rows_together(track.fragments.sample_count, turns_of):
        samples = track.samples_of(low, high)
        if turns_of is not None:
            samples = turns_of.timed(samples, track.fragments.sample_count, low, high)
        if wrapped and len(samples):
            falls = np.diff(samples.offset, prepend=max(before, 0)) < -(WRAP >> 1)
            before = int(samples.offset[-1])
            offset = samples.offset + (turns + np.cumsum(falls)) * WRAP
            turns += int(falls.sum())
            samples = SampleTable.of(samples.columns() | {"offset": offset})
        yield samples


def _rows_together(counts: Int64, turns_of: Turns | None) -> Iterator[tuple[int, int]]:
    """Rows of fragments whose samples are written out at once: neighbours in the file."""
    edges = [0, len(counts)]
    if turns_of is not None:
        edges = [0, *(np.flatnonzero(np.diff(turns_of.rows) != 1) + 1).tolist(), len(counts)]
    for start, stop in pairwise(edges):
        first = start if turns_of is None else int(turns_of.rows[start])
        low, end = first, first + stop - start
        while low < end:
            summed = np.cumsum(counts[low:end])
            high = low + max(1, int(np.searchsorted(summed, TOGETHER)))
            yield low, min(high, end)
            low = high


def is_wrapped(tracks: Sequence[Described], size: int) -> bool:
    """Whether offsets of a file of more than 4 GiB fall back."""
    if size <= WRAP:
        return False
    for pattern, _, _ in tracks:
        before = 0
        for samples in batches(pattern):
            if not len(samples):
                continue
            if int(samples.offset.max()) >= WRAP:
                return False
            if (np.diff(samples.offset, prepend=before) < -(WRAP >> 1)).any():
                return True
            before = int(samples.offset[-1])
    return False


def fit(tracks: Sequence[Described], window: Window, shift: int) -> float:
    """The part of the first samples that are where the tables say, moved by `shift`."""
    right = tried = 0
    for pattern, syntax, _ in tracks:
        if isinstance(syntax, str) or not syntax.delimited:
            continue
        samples = next(batches(pattern), SampleTable.empty())
        some = samples.rows(slice(None, None, max(1, len(samples) // TRIED)))
        for at, size in zip(some.offset.tolist(), some.size.tolist(), strict=True):
            if at + shift + size > window.stop:
                continue  # the file was cut off before it
            tried += 1
            right += _is_sample(syntax, window, at + shift, size)
    return right / tried if tried else 0.0


def _is_sample(syntax: Syntax, window: Window, at: int, size: int) -> bool:
    if at < 0 or size <= 0 or at + size > window.stop:
        return False
    sample = syntax.find(window, at, at + size)
    return sample is not None and sample.stop == at + size


def has_proof(tracks: Sequence[Described]) -> bool:
    """Whether samples of one of the tracks say where they end."""
    return any(not isinstance(syntax, str) and syntax.delimited for _, syntax, _ in tracks)


def shift_of(tracks: Sequence[Described], window: Window, start: int) -> int | None:
    """By how much the first samples of a track lie after what the tables say.

    Args:
        start: of media data, in which they are looked for.
    """
    for pattern, syntax, _ in tracks:
        if isinstance(syntax, str) or not syntax.delimited:
            continue
        samples = next(batches(pattern), SampleTable.empty())
        first = samples.rows(slice(0, IN_A_ROW))
        if len(first) < 2:
            continue
        places, sizes = (first.offset - first.offset[0]).tolist(), first.size.tolist()
        data = window.take(start, SEARCHED)
        for place in syntax.starts(data):
            at = start + place
            if all(
                _is_sample(syntax, window, at + step, size)
                for step, size in zip(places, sizes, strict=True)
            ):
                return at - int(first.offset[0])
            if syntax.spent > SEARCHED:
                break
    return None


class Mended(NamedTuple):
    """What a moov says, looked at.

    Attributes:
        tracks: the samples that are there.
        proved: of each track, how many were proved.
        lost: bytes of samples that are not what the tables say.
        findings: what was repaired and what was not looked at, as sentences.
    """

    tracks: list[Recovered]
    proved: list[int]
    lost: list[Lost]
    findings: list[str]


def mended(tracks: Sequence[Described], window: Window, shift: int, wrapped: bool) -> Mended:
    """The samples of each track, those left out that their codec refuses.

    Args:
        shift: bytes by which samples lie after what the tables say.
        wrapped: as in `batches`.
    """
    result = Mended([], [], [], [])
    if shift:
        result.findings.append(f"samples lie {shift:+,} bytes from where the tables say")
    if wrapped:
        result.findings.append("offsets of chunks passed 4 GiB in 32 bits")
    for pattern, syntax, turns in tracks:
        mender = _Track(pattern, syntax, window)
        for samples in batches(pattern, wrapped, turns):
            mender.add(samples, shift)
        if not mender.count:
            result.findings.append(f"track {pattern.track.id}: none of its samples is there")
            continue
        result.tracks.append(mender.recovered())
        result.proved.append(mender.proved)
        result.lost.extend(mender.lost)
        result.findings.extend(mender.findings())
        result.findings.extend(_of_turns(pattern, turns))
    return result


def _of_turns(pattern: Pattern, turns: Turns | None) -> Iterator[str]:
    """What was wrong with the order and times of fragments, as sentences."""
    name = f"track {pattern.track.id}"
    if turns is not None and turns.moved:
        yield f"{name}: {turns.moved:,} fragments were in the wrong order"
    if turns is not None and turns.stale:
        yield (
            f"{name}: decode times of {turns.stale:,} fragments fell back; each begins where the"
            " one before it ends"
        )


class _Track:
    """The samples of a track that are kept."""

    def __init__(self, pattern: Pattern, syntax: Syntax | str, window: Window) -> None:
        self._pattern, self._window = pattern, window
        self._syntax = syntax if isinstance(syntax, Syntax) and syntax.delimited else None
        self._unit = syntax.unit if isinstance(syntax, Even) else 0
        self._why = syntax if isinstance(syntax, str) else ""
        self._kept: list[SampleTable] = []
        # of AVC and HEVC: where the pictures' own order begins again, and the order
        self._fresh, self._order = bytearray(), array("q")
        self._sentences: list[str] = []
        self.lost: list[Lost] = []
        self.proved = self.count = self._marks = 0

    def add(self, samples: SampleTable, shift: int) -> None:
        """Look at samples in decode order."""
        offset = samples.offset + shift
        keep = (offset >= 0) & (offset + samples.size <= self._window.stop) & (samples.size > 0)
        sync = samples.sync.copy()
        if self._syntax is not None:
            for row in np.flatnonzero(keep).tolist():
                at, size = int(offset[row]), int(samples.size[row])
                sample = self._syntax.find(self._window, at, at + size)
                if sample is None or sample.stop != at + size:
                    keep[row] = False
                    self.lost.append(Lost(at, at + size, "not what the tables say"))
                    continue
                if sample.sync != sync[row]:
                    # pictures that others recover at may be marked: only the others are wrong
                    self._marks += 1
                    sync[row] = sample.sync
                if isinstance(self._syntax, NalUnits):
                    shown = self._syntax.accept(sample)
                    self._fresh.append(shown.fresh)
                    self._order.append(shown.order)
        columns = samples.columns() | {"offset": offset, "sync": sync}
        if self._unit:
            columns |= {"size": samples.size}
        self._kept.append(SampleTable.of(columns).rows(keep))
        if self._unit:
            self._kept[-1] = self._joined(self._kept[-1])
        count = int(keep.sum())
        self.count += count
        self.proved += count if self._syntax is not None else 0

    def _joined(self, samples: SampleTable) -> SampleTable:
        """Neighbours of one size as one row."""
        if not len(samples):
            return samples
        heads = np.append(0, np.flatnonzero(np.diff(samples.offset) != self._unit) + 1)
        counts = np.diff(heads, append=len(samples))
        rows = samples.rows(heads)
        return SampleTable.of(rows.columns() | {"size": counts * self._unit})

    def recovered(self) -> Recovered:
        """The samples as a track of the repaired file."""
        table = SampleTable.concat(self._kept)
        edits = [e.media_time for e in self._pattern.track.info.edits if e.media_time >= 0]
        dts, cts = self._with_durations(table)
        media_time = edits[0] if edits else 0
        if len(self._order) == len(cts) and not self._is_in_order(dts, cts):
            begins = np.flatnonzero(np.frombuffer(bytes(self._fresh), np.bool_))
            shown = shown_times(np.array(self._order, np.int64), np.union1d(begins, [0]), dts)
            ahead = int((dts - shown).max(initial=0))
            if ahead <= MOST_DELAYED * max(1, int(np.diff(dts).max(initial=0))):
                media_time = max(media_time, ahead)
                cts = shown + media_time
                self._sentences.append("composition times were wrong: pictures say their order")
        return Recovered(
            self._pattern, table.offset, table.size, dts, cts, table.sync, self._unit, media_time
        )

    def _with_durations(self, table: SampleTable) -> tuple[Int64, Int64]:
        """Decode and composition times.

        Where no sample lasts any time, the stream (VUI) and the mdhd say how long each does.
        """
        if len(table) < 2 or self._unit or int(table.dts[-1]) > int(table.dts[0]):
            return table.dts, table.cts
        mdhd = self._pattern.trak.find("mdia/mdhd")
        each = int(mdhd["duration"]) // len(table) if mdhd is not None else 0
        rate = rate_in(self._syntax) if isinstance(self._syntax, NalUnits) else None
        if rate is not None:
            of_stream = int(self._pattern.track.timescale / rate)
            # the longer a track, the nearer is what its mdhd says: pictures may vary
            each = of_stream if not each or abs(of_stream - each) * 4 < each else each
        if not 0 < each < WRAP:
            return table.dts, table.cts
        self._sentences.append(
            f"durations are missing: each sample is assumed to last {each} ticks"
        )
        self._pattern = replace(self._pattern, duration=each)
        steps = np.arange(len(table), dtype=np.int64) * each
        return table.dts + steps, table.cts + steps

    def _is_in_order(self, dts: Int64, cts: Int64) -> bool:
        """Whether pictures are shown in the order that they say, but for a few of them.

        Where pictures last no time, their order is of no use.
        """
        if not (np.diff(dts) > 0).all():
            return True
        part = np.cumsum(np.frombuffer(bytes(self._fresh), np.bool_))
        ranked = np.lexsort((np.array(self._order, np.int64), part))
        falls = int((np.diff(cts[ranked]) <= 0).sum())
        return falls * STALE <= len(cts)

    def findings(self) -> Iterator[str]:
        """What was repaired, and what was not looked at."""
        name = f"track {self._pattern.track.id}"
        yield from (f"{name}: {sentence}" for sentence in self._sentences)
        if self._marks:
            yield f"{name}: {self._marks:,} marks of sync samples were wrong"
        if self.lost:
            yield f"{name}: {len(self.lost):,} samples are not what the tables say"
        if self._why:
            yield f"{name}: {self._why}; its samples are taken as the tables say"
