"""Going on with the index of a file that has grown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fragdex.boxes import make_box
from fragdex.build.making import finished
from fragdex.build.making import index as make_index
from fragdex.build.reading import read_all
from fragdex.errors import SourceChanged
from fragdex.fragments.findings import Finding
from fragdex.fragments.resolve import TrackState
from fragdex.fragments.scan import MOOV, Captured, Scan
from fragdex.fragments.sync import merged
from fragdex.fragments.table import FragmentFlags, FragmentTable, SyncTable
from fragdex.seeking import registry
from fragdex.seeking.model import FragmentIndex, Period, TrackIndex
from fragdex.sources import open_source

__all__ = ["extend"]

GROWTH = frozenset({"truncated"})
"""Findings that a grown file may have outgrown."""
MOOV_ONLY = frozenset({"no-timescale", "many-edits", "edit-rate"})
"""Findings about a track as a whole, made once and not for each part of the file."""


def extend(index: FragmentIndex, what: Any) -> FragmentIndex:
    """The index of a file that has grown, going on from `index.resume_offset`.

    Only what lies behind that offset is read; where a moov comes behind the fragments it governs,
    the index is made anew.

    Raises:
        SourceChanged: the file is shorter than what is indexed already.
    """
    with open_source(what) as source:
        size = source.size
        if size is not None and size < index.resume_offset:
            raise SourceChanged(
                f"{source.name or 'the source'} is shorter than what is indexed already",
                expected=f"at least {index.resume_offset} bytes",
                found=size,
                advice="index it anew",
            )
        period = index.periods[-1]
        states = {track.id: _state(track) for track in period.tracks}
        defaults = {t.id: t.info.defaults for t in period.tracks if t.info.defaults is not None}
        scan = Scan(index.resume_offset, defaults, states)
        read_all(source, scan)
        known = _still_true(index.findings, period, size)
        # The moov that governs what comes is not in the grown part; its values are.
        init = (Captured(0, MOOV, b""), make_box("moov"), period.movie)
        more = finished(
            scan,
            source,
            size=size,
            init=init if period.movie.tracks else None,
            going_on=True,
            known=known,
        )
    if scan.movies and not period.movie.tracks and len(index.periods) == 1:
        # The moov has come, and governs the fragments before it as well.
        return make_index(what, exact=True)
    first, *others = more.periods
    whole = _joined(period, first, size)
    return FragmentIndex(
        replace(more.source, name=more.source.name or index.source.name),
        replace(more.how, method=index.how.method, exact=index.how.exact),
        (*index.periods[:-1], whole, *(replace(p, number=p.number + whole.number) for p in others)),
        findings=tuple(_once(finding, known) for finding in more.findings),
        complete=more.complete,
        resume_offset=more.resume_offset,
    )


def _once(finding: Finding, known: tuple[Finding, ...]) -> Finding:
    """A finding about a track, which was met again with the track itself."""
    before = (f for f in known if (f.code, f.track) == (finding.code, finding.track))
    return next(before, finding) if finding.code in MOOV_ONLY else finding


def _state(track: TrackIndex) -> TrackState:
    rows = track.fragments
    if not len(rows):
        return TrackState()
    return TrackState(
        int(rows.dts[-1] + rows.duration[-1]),
        int(rows.sample_start[-1] + rows.sample_count[-1]),
        len(rows),
    )


def _still_true(
    findings: tuple[Finding, ...], period: Period, size: int | None
) -> tuple[Finding, ...]:
    """Findings that the growth does not settle: samples of a moov may have come to lie inside."""
    kept = []
    for finding in findings:
        if finding.code == "data-outside" and (finding.path or "").startswith("moov"):
            table = period.track(finding.track or 0).fragments
            virtual = (table.flags & FragmentFlags.VIRTUAL) != 0
            count = int((virtual & (table.data_stop > (size or 0))).sum())
            if count:
                kept.append(replace(finding, count=count))
        elif finding.code not in GROWTH:
            kept.append(finding)
    return tuple(kept)


def _joined(before: Period, after: Period, size: int | None) -> Period:
    """One period from its known fragments and those that came."""
    news = {track.id: track for track in after.tracks}
    tracks = [_one(track, news.pop(track.id, None), size or 0) for track in before.tracks]
    return replace(before, tracks=(*tracks, *news.values()))


def _arrived(table: FragmentTable, size: int) -> FragmentTable:
    """The table, with the samples of a moov inside the file as far as they have come."""
    flags = table.flags.copy()
    virtual = (flags & FragmentFlags.VIRTUAL) != 0
    flags[virtual & (table.data_stop <= size)] &= ~np.uint32(FragmentFlags.OUTSIDE)
    return FragmentTable.of(table.columns() | {"flags": flags})


def _one(old: TrackIndex, new: TrackIndex | None, size: int) -> TrackIndex:
    if new is None:
        new = TrackIndex(old.info, FragmentTable.empty(), SyncTable.empty())
    more, split = new, len(old.fragments)

    def load(start: int, stop: int) -> Any:
        parts = []
        if start < split:
            parts.append(old.samples_of(start, min(stop, split)))
        if stop > split:
            parts.append(more.samples_of(max(start, split) - split, stop - split))
        return type(parts[0]).concat(parts) if parts else old.samples_of(0, 0)

    fragments = FragmentTable.concat([_arrived(old.fragments, size), new.fragments])
    return TrackIndex(
        old.info,
        fragments,
        merged([old.sync, new.sync], fragments.sample_start),
        shift=old.shift,
        period=old.period,
        exact=old.exact,
        groups=old.groups + new.groups,
        load_samples=load if old.has_samples else None,
    )


registry.offer("extend", extend)
