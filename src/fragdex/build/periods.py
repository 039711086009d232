"""What one moov governs → a period of the index."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fragdex.boxes import Box
from fragdex.byterange import ByteRange, coalesce
from fragdex.fragments.batch import Batch, Trafs
from fragdex.fragments.bounds import Layout
from fragdex.fragments.findings import Findings
from fragdex.fragments.groups import GroupBox, SampleGroup, fragment_groups, movie_groups
from fragdex.fragments.progressive import SampleRuns, read_sample_runs, virtual_fragments
from fragdex.fragments.resolve import TrackState, resolve
from fragdex.fragments.runs import Runs, SyncPoints
from fragdex.fragments.samples import MoofBytes, samples_of
from fragdex.fragments.scan import FTYP, Captured, Scan, Section
from fragdex.fragments.sync import merged
from fragdex.fragments.table import FragmentTable, Int64, SampleTable, SyncTable
from fragdex.fragments.tracks import Movie, SampleDefaults, TrackInfo
from fragdex.seeking.model import Period, TrackIndex

__all__ = ["Moov", "Rules", "init_ranges", "movie_of", "period"]

Moov = tuple[Captured, Box, Movie]
"""A moov as it was captured, parsed, and its values."""
Load = Callable[[int, int], SampleTable]


@dataclass(slots=True)
class Rules:
    """What holds for all periods of a file.

    Attributes:
        layout: where fragments and media data lie.
        moofs: fragments from this number on are left out.
        size: bytes of the file.
        strict: keep the positions of the rule where they miss the media data.
        source: bytes of moofs, for samples that are asked for later.
        states: where the tracks of an index that is extended go on, or None.
        findings: odd things are noted here.
    """

    layout: Layout
    moofs: int
    size: int
    strict: bool
    source: MoofBytes
    states: dict[int, TrackState] | None
    findings: Findings


@dataclass(frozen=True, slots=True)
class _Head:
    """The samples of a track that the moov itself names."""

    fragments: FragmentTable
    sync: SyncTable
    runs: SampleRuns
    samples: SampleTable | None
    groups: tuple[SampleGroup, ...]


def movie_of(moov: Moov | None) -> Movie:
    """What a moov says; an empty movie where there is none."""
    return moov[2] if moov is not None else Movie(0, 0, True, ())


def period(number: int, section: Section, moov: Moov | None, scan: Scan, rules: Rules) -> Period:
    """The period of one section of a scan.

    Args:
        number: of the period, from 0.
        section: its fragments.
        moov: what governs them, from the file or from elsewhere; None: nothing does.
        scan: where they come from.
        rules: what holds for the whole file.
    """
    movie = movie_of(moov)
    states = {} if rules.states is None else rules.states
    own = moov if section.moov >= 0 else None
    heads = _heads(own[1], movie, states, rules) if own is not None else {}
    before = {track: state.samples for track, state in states.items()}
    trafs, runs, points, boxes = _joined(section.batches, rules.moofs)
    _note_batches(section.batches, rules.findings)
    tables = resolve(trafs, runs, points, rules.layout, states, rules.findings, strict=rules.strict)
    groups = _groups(boxes, trafs, runs, before, moov)
    defaults = {t.id: t.defaults for t in movie.tracks if t.defaults is not None}
    infos = {info.id: info for info in movie.tracks}
    for track_id in tables:
        infos.setdefault(track_id, TrackInfo.unknown(track_id))
    tracks = []
    for track_id, info in infos.items():
        _note_info(info, rules.findings)
        fragments, sync = tables.get(track_id, (FragmentTable.empty(), SyncTable.empty()))
        load = _load_fragments(track_id, fragments, rules.source, defaults)
        head, samples = heads.get(track_id), None
        mine = groups.get(track_id, ())
        if head is not None:
            load = _load_both(head, load)
            mine = head.groups + mine
            if len(fragments):
                fragments = FragmentTable.concat([head.fragments, fragments])
                sync = merged([head.sync, sync])
            else:
                fragments, sync, samples = head.fragments, head.sync, head.samples
        tracks.append(
            TrackIndex(
                info,
                fragments,
                sync,
                shift=info.shift(movie.timescale),
                period=number,
                groups=mine,
                load_samples=load,
                samples=samples,
            )
        )
    return Period(number, init_ranges(own, scan), movie, tuple(tracks))


def init_ranges(moov: Moov | None, scan: Scan) -> tuple[ByteRange, ...]:
    """The last ftyp before a moov of this file (or the first one at all), and the moov."""
    if moov is None:
        return ()
    at = moov[0].offset
    ranges = [ByteRange(at, at + len(moov[0].data))]
    brands = [c for c in scan.captured if c.type == FTYP]
    before = [c for c in brands if c.offset < at]
    brand = before[-1] if before else (brands[0] if brands else None)
    if brand is not None:
        ranges.append(ByteRange(brand.offset, brand.offset + len(brand.data)))
    return tuple(coalesce(ranges))


def _heads(
    moov: Box, movie: Movie, states: dict[int, TrackState], rules: Rules
) -> dict[int, _Head]:
    """The samples that the moov itself names, by track."""
    found = {}
    infos = {info.id: info for info in movie.tracks}
    for track_id, stbl in _stbls(moov).items():
        if track_id not in infos:
            continue
        runs = read_sample_runs(stbl, track_id, rules.findings)
        if runs is None:
            continue
        timescale = infos[track_id].timescale
        fragments, sync, samples = virtual_fragments(runs, timescale, rules.size)
        outside = int((fragments.data_stop > rules.size).sum())
        if outside:
            rules.findings.add(
                "data-outside",
                "samples lie outside of every mdat, or past the end of the file",
                path="moov/trak/mdia/minf/stbl",
                track=track_id,
                count=outside,
            )
        found[track_id] = _Head(fragments, sync, runs, samples, movie_groups(stbl))
        state = states.setdefault(track_id, TrackState())
        state.samples, state.rows = runs.count, len(fragments)
        state.next_dts = int(fragments.dts[-1] + fragments.duration[-1])
    return found


def _stbls(moov: Box) -> dict[int, Box]:
    found: dict[int, Box] = {}
    for trak in moov.find_all("trak"):
        tkhd, stbl = trak.find("tkhd"), trak.find("mdia/minf/stbl")
        if tkhd is not None and stbl is not None and "track_ID" in tkhd:
            found.setdefault(tkhd["track_ID"], stbl)
    return found


def _note_batches(batches: Sequence[Batch], findings: Findings) -> None:
    wide = sum(batch.wide_offsets for batch in batches)
    if wide:
        findings.add(
            "wide-composition-offset",
            "an unsigned composition offset of 2^31 or more was read as signed",
            path="moof/traf/trun",
            count=wide,
        )
    for track, name in sorted(set().union(*(batch.unknown_defaults for batch in batches))):
        findings.add(
            f"no-default-{name}",
            f"neither tfhd nor a trex says the default sample {name}; 0 was taken",
            path="moof/traf/tfhd",
            track=track,
        )


def _joined(batches: Sequence[Batch], moofs: int) -> tuple[Trafs, Runs, SyncPoints, list[GroupBox]]:
    """All batches as one, less the fragments from number `moofs` on."""
    trafs_before = runs_before = 0
    parts: tuple[list[Trafs], list[Runs], list[SyncPoints]] = ([], [], [])
    boxes: list[GroupBox] = []
    for batch in batches:
        trafs, runs, points = batch.trafs, batch.runs, batch.points
        parts[0].append(trafs)
        boxes += [GroupBox(box.traf + trafs_before, box.data) for box in batch.groups]
        if trafs_before:
            runs = Runs.of(runs.columns() | {"traf": runs.traf + trafs_before})
            points = SyncPoints.of(points.columns() | {"run": points.run + runs_before})
        parts[1].append(runs)
        parts[2].append(points)
        trafs_before += len(trafs)
        runs_before += len(runs)
    trafs = Trafs.concat(parts[0])
    runs = Runs.concat(parts[1])
    points = SyncPoints.concat(parts[2])
    if len(trafs) and trafs.moof[-1] >= moofs:
        keep = int(np.searchsorted(trafs.moof, moofs))
        trafs = trafs.rows(slice(keep))
        runs = runs.rows(slice(int(np.searchsorted(runs.traf, keep))))
        points = points.rows(slice(int(np.searchsorted(points.run, len(runs)))))
        boxes = [box for box in boxes if box.traf < keep]
    return trafs, runs, points, boxes


def _groups(
    boxes: list[GroupBox], trafs: Trafs, runs: Runs, before: dict[int, int], moov: Moov | None
) -> dict[int, tuple[SampleGroup, ...]]:
    """The access-point groups of the fragments, by track."""
    if not boxes:
        return {}
    counts = np.zeros(len(trafs), np.int64)
    np.add.at(counts, runs.traf, runs.count)
    stbls = _stbls(moov[1]) if moov is not None else {}
    found = {}
    for track in np.unique(trafs.track[[box.traf for box in boxes]]).tolist():
        mine = trafs.track == track
        running: Int64 = np.cumsum(np.where(mine, counts, 0)) + before.get(track, 0) - counts
        chosen = [box for box in boxes if mine[box.traf]]
        found[track] = fragment_groups(chosen, running, stbls.get(track))
    return found


def _load_fragments(
    track: int,
    fragments: FragmentTable,
    source: MoofBytes,
    defaults: Mapping[int, SampleDefaults],
) -> Load:
    def load(start: int, stop: int) -> SampleTable:
        return samples_of(track, fragments.rows(slice(start, stop)), source, defaults)

    return load


def _load_both(head: _Head, rest: Load) -> Load:
    """Samples of virtual fragments from the moov, of those behind them from their moofs."""

    def load(start: int, stop: int) -> SampleTable:
        n = len(head.fragments)
        parts = []
        if start < min(stop, n):
            rows = head.fragments.rows(slice(start, min(stop, n)))
            first = int(rows.sample_start[0])
            last = int(rows.sample_start[-1] + rows.sample_count[-1])
            parts.append(head.runs.expand(first, last))
        if stop > n:
            parts.append(rest(max(start, n) - n, stop - n))
        return SampleTable.concat(parts)

    return load


def _note_info(info: TrackInfo, findings: Findings) -> None:
    shown = [edit for edit in info.edits if edit.media_time >= 0]
    if shown and info.edits[-1] is not shown[0]:
        findings.add(
            "many-edits",
            "the edit list has more than one edit; only the first one is applied",
            path="moov/trak/edts/elst",
            track=info.id,
        )
    if any(edit.rate != 1 for edit in shown):
        findings.add(
            "edit-rate",
            "an edit has a rate other than 1; it is played at rate 1",
            path="moov/trak/edts/elst",
            track=info.id,
        )
    if not info.timescale:
        findings.add(
            "no-timescale",
            "the timescale is unknown or 0, so ticks cannot be told in seconds",
            path="moov/trak/mdia/mdhd",
            track=info.id,
        )
