"""What an index says and its file does not: one index held against another of the same file.

An index that is not exact may join fragments into one and leave columns open: it is right if each
of its rows starts where a fragment starts, ends where one ends, and tells the times of what lies
between.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.fragments.findings import Finding, Findings
from fragdex.fragments.table import NULL, FragmentFlags, FragmentTable, Int64
from fragdex.seeking.model import Index, Track

MAX_SYNC = 1 << 26
"""Sync samples of a track that are compared one by one; a day of sound has 4 million."""


def differences(claimed: Index, true: Index) -> tuple[Finding, ...]:
    """What differs, the same thing in the same track counted once.

    Returns: findings; each names the first byte it concerns. Empty: nothing differs.
    """
    findings = Findings()
    if claimed.file.size not in (None, true.file.size):
        findings.add(
            "size",
            f"the index is of a file of {claimed.file.size} bytes, this one has {true.file.size}",
        )
    theirs = {(track.period, track.id): track for track in true.tracks}
    for track in claimed.tracks:
        other = theirs.pop((track.period, track.id), None)
        if other is None:
            findings.add("track", "the file has no such track", track=track.id)
        elif not other.exact:
            findings.add("inexact", "the samples of the file are not known", track=track.id)
        else:
            _info(findings, track, other)
            if track.timescale == other.timescale:
                by_moof = claimed.how.method == "mfra"
                edges = _edges(true, track.period)
                _Rows(findings, track, other, edges, by_moof=by_moof).compare()
    for track in theirs.values():
        if len(track.fragments):
            findings.add("track-missing", "the index lacks a track of the file", track=track.id)
    return findings.all()


def _info(findings: Findings, claimed: Track, true: Track) -> None:
    for name in ("timescale", "codec", "width", "height", "sample_rate", "language"):
        claim, is_ = getattr(claimed.info, name), getattr(true.info, name)
        # forms that know less leave values out
        if claim != is_ and claim not in (None, "", 0):
            findings.add(name, f"{name} is {is_}, the index says {claim}", track=true.id)


class _Rows:
    """The tables of one track, compared.

    Args:
        edges: where fragments of any track start, and where they end.
        by_moof: whether the index knows moofs alone, as an mfra does: neither what introduces
            them nor where their media data ends.
    """

    def __init__(
        self,
        findings: Findings,
        claimed: Track,
        true: Track,
        edges: tuple[Int64, Int64],
        *,
        by_moof: bool = False,
    ) -> None:
        self.findings, self.claimed, self.true = findings, claimed, true
        self.edges, self.by_moof = edges, by_moof
        # Both as presentation times; a rescaled time may be off by one tick.
        self.shift = round(claimed.shift - true.shift)
        self.slack = 0 if claimed.exact and claimed.shift == true.shift else 1
        # A sidx and an mfra speak of what is presented: of a fragment whose first samples the edit
        # list hides, such as the priming of an audio encoder, they know the rest.
        # Nor can they name a time before presentation time 0, or that of the first edit.
        edits = (edit.media_time for edit in true.info.edits if edit.media_time >= 0)
        starts = [math.ceil(-true.shift), *islice(edits, 1)]
        self.starts = () if claimed.exact else starts
        # Rows that say themselves that they have the times of another track make no claim.
        flags = claimed.fragments.flags & np.uint32(FragmentFlags.TIMES_GUESSED)
        self.guessed = (flags != 0) & (not claimed.exact)

    def note(self, code: str, message: str, offsets: Int64) -> None:
        if len(offsets):
            self.findings.add(
                code, message, offset=int(offsets[0]), track=self.true.id, count=len(offsets)
            )

    def compare(self) -> None:
        """Note every difference."""
        ours, theirs = self.claimed.fragments, self.true.fragments
        if not self.claimed.exact:
            # A fragment with no sample of this track says nothing of it.
            theirs = theirs.rows(theirs.sample_count > 0)
        order = np.argsort(theirs.offset, kind="stable")
        theirs = theirs.rows(order)
        ends = theirs.offset + theirs.size
        stop = ours.offset + ours.size
        empty = np.zeros(len(ours), np.bool_)
        if self.by_moof:
            first, at_start = _places(theirs.moof_offset, ours.offset)
            last = np.searchsorted(theirs.moof_offset, stop) - 1
            at_end = stop >= ends[last]
        elif self.claimed.exact:
            first, at_start = _places(theirs.offset, ours.offset)
            last, at_end = _places(ends, stop)
        else:
            # The rows tile the bytes of all tracks, with what lies between two fragments; some
            # may hold nothing of this track.
            at_start = np.isin(ours.offset, self.edges[0])
            at_end = np.isin(stop, np.concatenate(self.edges))
            first = np.searchsorted(theirs.offset, ours.offset)
            last = np.searchsorted(theirs.offset, stop) - 1
            empty = last < first
        self.note("offset", "no fragment starts where the index says", ours.offset[~at_start])
        wrong_end = at_start & (~at_end | ((last < first) & ~empty))
        self.note("stop", "no fragment ends where the index says", ours.offset[wrong_end])
        good = at_start & at_end & (last >= first)
        self._covered(theirs, first[good], last[good])
        if good.any():
            self._values(np.flatnonzero(good), theirs, first[good], last[good])
        self._sync()
        if self.claimed.exact and self.claimed.has_samples and self.true.has_samples:
            self._samples()

    def _covered(self, theirs: FragmentTable, first: Int64, last: Int64) -> None:
        marks = np.zeros(len(theirs) + 1, np.int64)
        np.add.at(marks, first, 1)
        np.add.at(marks, last + 1, -1)
        times = np.cumsum(marks[:-1])
        self.note("missing", "the index lacks fragments of the file", theirs.offset[times == 0])
        self.note("twice", "the index has fragments twice", theirs.offset[times > 1])

    def _values(self, rows: Int64, theirs: FragmentTable, first: Int64, last: Int64) -> None:
        ours = self.claimed.fragments.rows(rows)
        for name, truth in (
            ("cts_min", _spans(np.minimum, theirs.cts_min, first, last)),
            ("cts_end", _spans(np.maximum, theirs.cts_end, first, last)),
            ("dts", theirs.dts[first]),
        ):
            claim = getattr(ours, name)
            known = (claim != NULL) & (truth != NULL) & ~self.guessed[rows]
            wrong = known & (np.abs(claim + self.shift - truth) > self.slack)
            for start in self.starts if name != "dts" else ():
                wrong &= np.abs(claim + self.shift - np.maximum(truth, start)) > self.slack
            if name == "cts_end" and not self.claimed.exact:
                # a sidx reaches to the next earliest time (8.16.3.3), over gaps and overlaps
                least = np.minimum.accumulate(theirs.cts_min[::-1])[::-1]
                after = np.append(least, least[-1:])[last + 1]
                for start in (NULL, *self.starts):
                    until = np.maximum(after, start)
                    wrong &= np.abs(claim + self.shift - until) > self.slack
            self.note(name, f"{name} differs", ours.offset[wrong])
        for name in ("duration", "sample_count"):
            claim = getattr(ours, name)
            truth = _spans(np.add, getattr(theirs, name), first, last)
            slack = self.slack if name == "duration" else 0
            wrong = (claim != NULL) & (np.abs(claim - truth) > slack)
            # From one earliest time to the next is what a sidx calls duration.
            if name == "duration" and not self.claimed.exact:
                continue
            self.note(name, f"{name} differs", ours.offset[wrong])

    def _sync(self) -> None:
        if max(int(t.sync_samples.count.sum()) for t in (self.claimed, self.true)) > MAX_SYNC:
            return
        claim = _sync_times(self.claimed) + self.shift
        truth = _sync_times(self.true)
        count = len(truth)
        hidden = [start for start in self.starts if count and truth[0] < start]
        truth = np.sort(np.append(truth, np.array(hidden, np.int64)))
        sync = self.claimed.sync_samples
        rows = np.repeat(sync.fragment, sync.count)
        near = np.searchsorted(truth, claim)
        gap = np.full(len(claim), np.iinfo(np.int64).max)
        for step in (0, -1):
            index = near + step
            valid = (index >= 0) & (index < len(truth))
            gap[valid] = np.minimum(gap[valid], np.abs(truth[index[valid]] - claim[valid]))
        wrong = (gap > self.slack) & ~self.guessed[rows]
        offsets = self.claimed.fragments.offset[rows[wrong]]
        self.note("sync", "no sync sample is at the time that the index says", offsets)
        if self.claimed.exact and len(claim) != count:
            self.findings.add(
                "sync-count",
                f"the file has {count} sync samples, the index {len(claim)}",
                track=self.true.id,
            )

    def _samples(self) -> None:
        ours, theirs = self.claimed.samples, self.true.samples
        if len(ours) != len(theirs):
            self.findings.add(
                "samples",
                f"the file has {len(theirs)} samples, the index {len(ours)}",
                track=self.true.id,
            )
            return
        for name, column in ours.columns().items():
            truth: npt.NDArray[Any] = getattr(theirs, name)
            self.note(f"sample-{name}", f"{name} of samples differs", ours.offset[column != truth])


def _places(values: Int64, wanted: Int64) -> tuple[Int64, npt.NDArray[np.bool_]]:
    """Where wanted values stand among rising ones, and whether they do."""
    if not len(values):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    order = np.argsort(values, kind="stable")
    place = np.minimum(np.searchsorted(values[order], wanted), len(values) - 1)
    rows: Int64 = order[place]
    return rows, values[rows] == wanted


def _spans(pick: np.ufunc, values: Int64, first: Int64, last: Int64) -> Int64:
    """`pick` over rows first to last (inclusive), for each pair."""
    pairs = np.ravel(np.column_stack([first, last + 1]))
    # reduceat wants a row after the last; every second result is of what lies between pairs
    padded = np.append(values, values[-1:])
    result: Int64 = pick.reduceat(padded, pairs)[::2]
    return result


def _edges(index: Index, period: int) -> tuple[Int64, Int64]:
    """Where the fragments of all tracks of a period start, and where they end."""
    tables = [track.fragments for track in index.tracks if track.period == period]
    offsets = np.concatenate([table.offset for table in tables])
    return offsets, np.concatenate([table.offset + table.size for table in tables])


def _sync_times(track: Track) -> Int64:
    sync = track.sync_samples
    starts = np.repeat(np.cumsum(sync.count) - sync.count, sync.count)
    turn = np.arange(len(starts)) - starts
    ticks: Int64 = np.repeat(sync.cts, sync.count) + turn * np.repeat(sync.step, sync.count)
    return np.sort(ticks)
