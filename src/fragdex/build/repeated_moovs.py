"""The same moov again: one movie, and not a period for each.

Recorders and joined segments repeat the initialization segment; others write a preliminary moov
and a final one. Where times begin anew, or other tracks come, it is another period.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fragdex.fragments.findings import Findings
from fragdex.fragments.fragment_batches import Section
from fragdex.fragments.scan import Scan
from fragdex.seeking.model import Period, TrackIndex

__all__ = ["Told", "joined", "only_one_of"]

Told = tuple[Period, Section]
"""A period, and the section that it was made of."""
MOST_COMPARED = 1 << 22
"""Samples of a track up to which the samples of two moovs are compared."""


def joined(sections: Sequence[Section], scan: Scan, findings: Findings) -> list[Section]:
    """The sections of a file; those whose moov repeats and whose times go on become one."""
    whole: list[Section] = []
    times: dict[int, int] | None = None
    for section in sections:
        if whole and section.repeats:
            if times is None:
                times = whole[-1].last_times()
            first = section.first_times()
            if all(time > times[track] for track, time in first.items() if track in times):
                times |= section.last_times()
                whole[-1].append(section)
                _note(findings, scan.movies[section.moov][0].offset)
                continue
        whole.append(section)
        times = None
    return whole


def only_one_of(before: Told, new: Told, offset: int, findings: Findings) -> Told | None:
    """Of two periods that name the same samples, the one that names more; of equals, the first.

    Args:
        before, new: each with the section that it was made of.
        offset: of the moov of the new one, for the finding.

    Returns: None where they are two periods.
    """
    if not (_alike(before, new) or _alike(new, before)):
        return None
    if _covers(before[0], new[0]):
        kept = before
    elif _covers(new[0], before[0]):
        period = replace(new[0], number=before[0].number)
        for track in period.tracks:
            track.period = period.number
        kept = period, new[1]
    else:
        return None
    _note(findings, offset)
    return kept


def _alike(one: Told, other: Told) -> bool:
    """Whether the tracks of `one` are among those of `other`, and decode alike."""
    mine, theirs = one[1].decoders, other[1].decoders
    return bool(mine) and all(mine[track] == theirs.get(track) for track in mine)


def _covers(fuller: Period, other: Period) -> bool:
    """Whether every sample of `other` is one of `fuller`, in the same order."""
    known = {track.id: track for track in fuller.tracks}
    return all(
        not len(track.fragments) or (track.id in known and _begins_with(known[track.id], track))
        for track in other.tracks
    )


def _begins_with(fuller: TrackIndex, other: TrackIndex) -> bool:
    count, room = other.sample_count, fuller.sample_count
    if count is None or room is None or not count <= room <= MOST_COMPARED:
        return False
    # Mostly the first bytes tell other movies apart; samples are written out for few.
    if fuller.fragments.data_start[0] != other.fragments.data_start[0]:
        return False
    mine, theirs = fuller.samples, other.samples
    return all(
        np.array_equal(getattr(mine, name)[:count], getattr(theirs, name))
        for name in ("offset", "size")
    )


def _note(findings: Findings, offset: int) -> None:
    findings.add(
        "repeated-moov",
        "a moov of the same tracks comes again; it is one movie with the one before",
        offset=offset,
        path="moov",
    )
