"""What one moov governs → a period of the index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fragdex.boxes import Box
from fragdex.byterange import ByteRange, coalesce
from fragdex.fragments.findings import Findings
from fragdex.fragments.groups import SampleGroup, movie_groups
from fragdex.fragments.headers import Rows
from fragdex.fragments.progressive import virtual_fragments
from fragdex.fragments.resolve import TrackState
from fragdex.fragments.sample_runs import SampleRuns, read_sample_runs
from fragdex.fragments.samples import MoofBytes, samples_of
from fragdex.fragments.scan import FTYP, Captured, Scan
from fragdex.fragments.sections import Section
from fragdex.fragments.sync import merged
from fragdex.fragments.table import FragmentTable, SampleTable, SyncTable
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
        tops: top-level boxes of the file, in stretches.
        moofs: fragments from this number on are left out.
        size: bytes of the file.
        strict: keep the positions of the rule where they miss the media data.
        source: bytes of moofs, for samples that are asked for later.
        findings: odd things are noted here.
        short: set where a moov names samples past the end of the file.
    """

    tops: list[Rows]
    moofs: int
    size: int
    strict: bool
    source: MoofBytes
    findings: Findings
    short: bool = False


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
    own = moov if section.moov >= 0 else None
    heads = _heads(section, movie, rules) if own is not None else {}
    _note_section(section, rules.findings)
    tables = section.finish(rules.tops, rules.moofs, rules.findings, strict=rules.strict)
    defaults = {t.id: t.defaults for t in movie.tracks if t.defaults is not None}
    infos = {info.id: info for info in movie.tracks}
    for track_id in sorted(tables):
        infos.setdefault(track_id, TrackInfo.unknown(track_id))
    tracks = []
    for track_id, info in infos.items():
        _note_info(info, rules.findings)
        fragments, sync = tables.get(track_id, (FragmentTable.empty(), SyncTable.empty()))
        load = _load_fragments(track_id, fragments, rules.source, defaults)
        head, samples = heads.get(track_id), None
        mine = section.groups(track_id)
        if head is not None:
            load = _load_both(head, load)
            mine = head.groups + mine
            if len(fragments):
                fragments = FragmentTable.concat([head.fragments, fragments])
                sync = merged([head.sync, sync], fragments.sample_start)
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


def _heads(section: Section, movie: Movie, rules: Rules) -> dict[int, _Head]:
    """The samples that the moov itself names, by track."""
    found = {}
    infos = {info.id: info for info in movie.tracks}
    for track_id, stbl in section.stbls.items():
        if track_id not in infos:
            continue
        runs = read_sample_runs(stbl, track_id, rules.findings, file_end=rules.size)
        if runs is None:
            continue
        timescale = infos[track_id].timescale
        fragments, sync, samples = virtual_fragments(runs, timescale, rules.size)
        outside = int((fragments.data_stop > rules.size).sum())
        if outside:
            rules.short = True
            rules.findings.add(
                "data-outside",
                "samples lie outside of every mdat, or past the end of the file",
                path="moov/trak/mdia/minf/stbl",
                track=track_id,
                count=outside,
            )
        found[track_id] = _Head(fragments, sync, runs, samples, movie_groups(stbl))
        state = section.states.setdefault(track_id, TrackState())
        state.samples, state.rows = runs.count, len(fragments)
        state.next_dts = int(fragments.dts[-1] + fragments.duration[-1])
    return found


def _note_section(section: Section, findings: Findings) -> None:
    if section.wide_offsets:
        findings.add(
            "wide-composition-offset",
            "an unsigned composition offset of 2^31 or more was read as signed",
            path="moof/traf/trun",
            count=section.wide_offsets,
        )
    for track, name in sorted(section.unknown_defaults):
        findings.add(
            f"no-default-{name}",
            f"neither tfhd nor a trex says the default sample {name}; 0 was taken",
            path="moof/traf/tfhd",
            track=track,
        )


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
