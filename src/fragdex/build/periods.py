"""What one moov governs → a period of the index."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from fragdex.build.samples import BothSamples, FragmentSamples
from fragdex.build.sync_doubts import Known, note_doubts
from fragdex.byterange import ByteRange, coalesce
from fragdex.fragments.bounds import Layout
from fragdex.fragments.findings import Findings
from fragdex.fragments.fragment_batches import Section
from fragdex.fragments.groups import SampleGroup, movie_groups
from fragdex.fragments.moof_decoder import MoofBytes, MoofDecoder
from fragdex.fragments.progressive import virtual_fragments
from fragdex.fragments.resolve import TrackState
from fragdex.fragments.sample_runs import NEGATIVE_DURATION, SampleRuns, read_sample_runs
from fragdex.fragments.scan import Captured, Scan
from fragdex.fragments.sync import Expansion, merged
from fragdex.fragments.table import FragmentTable, Int64, SampleTable, SyncTable
from fragdex.fragments.track_info import Movie, TrackInfo
from fragdex.seeking.model import Period, SampleLoader, TrackIndex

__all__ = ["Moov", "Rules", "infos_of", "init_ranges", "movie_of", "period"]

Moov = tuple[Captured, Movie]
"""A moov as it was captured, and its values."""


@dataclass(slots=True)
class Rules:
    """What holds for all periods of a file.

    Attributes:
        layout: gives that of the whole file, laid out once.
        moofs: fragments from this number on are left out.
        size: bytes of the file.
        strict: keep the positions of the rule where they miss the media data.
        source: bytes of moofs.
        findings: odd things are noted here.
        tables: sample tables of all moovs.
        expansion: bounds what is written out of sync samples that overlap.
        short: set where a moov names samples past the end of the file.
        decoder: of moofs, for samples that are asked for later.
    """

    layout: Callable[[], Layout]
    moofs: int
    size: int
    strict: bool
    source: MoofBytes
    findings: Findings
    tables: int = 1
    expansion: Expansion = field(default_factory=Expansion)
    short: bool = False
    decoder: MoofDecoder = field(init=False)

    def __post_init__(self) -> None:
        self.decoder = MoofDecoder(self.source)


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
    return moov[1] if moov is not None else Movie(0, 0, True, ())


def infos_of(movie: Movie) -> dict[int, TrackInfo]:
    """What the moov says of each track, by track_ID; of two of one track_ID the first counts."""
    infos: dict[int, TrackInfo] = {}
    for info in movie.tracks:
        infos.setdefault(info.id, info)
    return infos


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
    tables = section.finish(
        rules.layout,
        rules.moofs,
        rules.findings,
        strict=rules.strict,
        expansion=rules.expansion,
    )
    defaults = {t.id: t.defaults for t in movie.tracks if t.defaults is not None}
    infos = infos_of(movie)
    for track_id in sorted(tables):
        infos.setdefault(track_id, TrackInfo.unknown(track_id))
    tracks: list[TrackIndex] = []
    doubted: Known = {}
    for track_id, info in infos.items():
        _note_info(info, rules.findings)
        fragments, sync = tables.get(track_id, (FragmentTable.empty(), SyncTable.empty()))
        load: SampleLoader = FragmentSamples(track_id, fragments, rules.decoder, defaults)
        head, samples = heads.get(track_id), None
        mine = section.groups(track_id)
        if head is not None:
            virtual = head.fragments
            load = BothSamples(head.runs, virtual.sample_start, virtual.sample_count, load)
            mine = head.groups + mine
            if len(fragments):
                fragments = FragmentTable.concat([head.fragments, fragments])
                sync = merged([head.sync, sync], fragments.sample_start, expansion=rules.expansion)
            else:
                fragments, sync, samples = head.fragments, head.sync, head.samples
        stbl = section.stbls.get(track_id) if head is not None else None
        note_doubts(info, fragments, sync, stbl, rules.source, rules.findings, doubted)
        tracks.append(
            TrackIndex(
                info,
                fragments,
                sync,
                shift=info.shift(movie.timescale),
                movie_timescale=movie.timescale,
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
    brands = scan.brands
    if brands:
        brand = brands[max(0, bisect_left(brands, at, key=attrgetter("offset")) - 1)]
        ranges.append(ByteRange(brand.offset, brand.offset + len(brand.data)))
    return tuple(coalesce(ranges))


def _heads(section: Section, movie: Movie, rules: Rules) -> dict[int, _Head]:
    """The samples that the moov itself names, by track."""
    found = {}
    infos = infos_of(movie)
    for track_id, stbl in section.stbls.items():
        if track_id not in infos:
            continue
        runs = read_sample_runs(stbl, track_id, rules.findings, file_end=rules.size)
        if runs is None:
            continue
        timescale = infos[track_id].timescale
        fragments, sync, samples = virtual_fragments(
            runs, timescale, rules.size, sharing=rules.tables, expansion=rules.expansion
        )
        outside = int((fragments.data_stop > rules.size).sum())
        rules.short |= outside > 0
        outside = outside or _outside_mdats(runs, fragments, rules.layout())
        if outside:
            rules.findings.add(
                "data-outside",
                "samples are outside every mdat, or past the end of the file",
                path="moov/trak/mdia/minf/stbl",
                track=track_id,
                count=outside,
            )
        found[track_id] = _Head(fragments, sync, runs, samples, movie_groups(stbl))
        state = section.states.setdefault(track_id, TrackState())
        state.samples, state.rows = runs.count, len(fragments)
        state.next_dts = int(fragments.dts[-1] + fragments.duration[-1])
    return found


def _outside_mdats(runs: SampleRuns, fragments: FragmentTable, layout: Layout) -> int:
    """Chunks of samples that do not lie in one mdat."""
    low, high = int(fragments.data_start.min()), int(fragments.data_stop.max())
    if _in_mdats(np.array([low]), np.array([high]), layout).all():
        return 0
    edges = np.append(runs.chunk_start, runs.count)
    if len(runs.size) == 1:
        sizes = np.diff(edges) * runs.size[0]
    else:
        sizes = np.diff(np.append(0, np.cumsum(runs.size))[edges])
    inside = _in_mdats(runs.chunk_offset, runs.chunk_offset + sizes, layout)
    return int((~inside & (sizes > 0)).sum())


def _in_mdats(start: Int64, stop: Int64, layout: Layout) -> npt.NDArray[np.bool_]:
    """Whether each range lies in the payload of one mdat."""
    if not len(layout.mdat_start):
        return np.zeros(len(start), np.bool_)
    mdat = np.searchsorted(layout.mdat_start, start, side="right") - 1
    inside: npt.NDArray[np.bool_] = (mdat >= 0) & (stop <= layout.mdat_stop[mdat])
    return inside


def _note_section(section: Section, findings: Findings) -> None:
    for track, entry in sorted(section.entries):
        stbl = section.stbls.get(track)
        described = len(stbl.find_all("stsd/*")) if stbl is not None else 0
        if described and not 1 <= entry <= described:
            findings.add(
                "no-description",
                f"a fragment names sample entry {entry} of {described}",
                path="moof/traf/tfhd",
                track=track,
            )
    if section.loose:
        findings.add(
            "trun-rest",
            "a trun has more bytes than its samples take; the rest is ignored",
            path="moof/traf/trun",
            count=section.loose,
        )
    if section.wide_offsets:
        findings.add(
            "wide-composition-offset",
            "an unsigned composition offset of 2^31 or more was read as signed",
            path="moof/traf/trun",
            count=section.wide_offsets,
        )
    if section.backward:
        findings.add(
            "negative-duration",
            NEGATIVE_DURATION,
            path="moof/traf/trun",
            count=section.backward,
        )
    for track, name in sorted(section.unknown_defaults):
        findings.add(
            f"no-default-{name}",
            f"neither tfhd nor trex has a default sample {name}; 0 is used",
            path="moof/traf/tfhd",
            track=track,
        )


def _note_info(info: TrackInfo, findings: Findings) -> None:
    shown = [edit for edit in info.edits if edit.media_time >= 0]
    if shown and info.edits[-1] is not shown[0]:
        findings.add(
            "many-edits",
            "the edit list has more than one edit; seeks follow only the first",
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
            "the timescale is unknown or 0, so ticks cannot be converted to seconds",
            path="moov/trak/mdia/mdhd",
            track=info.id,
        )
