"""A finished scan → the periods of an index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fragdex.boxes import Box, parse_box
from fragdex.byterange import ByteRange
from fragdex.errors import FormatError, MalformedBox
from fragdex.fragments import hop
from fragdex.fragments.batch import Batch, Trafs
from fragdex.fragments.bounds import MDAT, MOOF, Layout, lay_out
from fragdex.fragments.findings import Finding, Findings
from fragdex.fragments.progressive import SampleRuns, read_sample_runs, virtual_fragments
from fragdex.fragments.resolve import TrackState, resolve
from fragdex.fragments.runs import Runs, SyncPoints
from fragdex.fragments.samples import MoofBytes, samples_of
from fragdex.fragments.scan import FTYP, Captured, Scan, Section
from fragdex.fragments.sync import merged
from fragdex.fragments.table import FragmentTable, Int64, SampleTable, SyncTable
from fragdex.fragments.tracks import Movie, SampleDefaults, TrackInfo
from fragdex.seeking.model import Period, TrackIndex

__all__ = ["Assembled", "assemble", "init_ranges", "movie_of"]


@dataclass(slots=True)
class Assembled:
    """What a scan came to."""

    periods: tuple[Period, ...]
    findings: tuple[Finding, ...]
    complete: bool
    resume_offset: int


@dataclass(slots=True)
class _End:
    """Where the usable part of the file ends, and from which moof on fragments are left out."""

    complete: bool
    resume: int
    moofs: int


def assemble(
    scan: Scan,
    size: int,
    *,
    init: tuple[Captured, Box, Movie] | None = None,
    strict: bool = False,
    partial: bool = False,
    states: dict[int, TrackState] | None = None,
    known: tuple[Finding, ...] = (),
) -> Assembled:
    """The periods of a scanned file.

    Args:
        scan: it has seen everything up to `size`.
        size: bytes of the file.
        init: an initialization segment from elsewhere; it governs what no moov governs here.
        strict: keep the positions of the rule where they miss the media data; damage raises.
        partial: keep fragments whose media data is not whole.
        states: where the tracks of an index that is extended go on.
        known: findings of that index.
    """
    scan.settle()
    findings = Findings(known)
    if scan.stopped is not None:
        if strict:
            raise scan.stopped
        findings.add(
            "malformed-box",
            f"{scan.stopped.message}; what follows is not read",
            offset=scan.stopped.offset,
        )
    offset, sizes, types = scan.top_level()
    if scan.to_end is not None and scan.to_end[1] == MDAT:
        start, kind = scan.to_end
        offset = np.append(offset, start)
        sizes = np.append(sizes, size - start)
        types = np.append(types, np.uint32(kind))
    layout = lay_out(offset, sizes, types)
    _note_damage(scan, layout, findings, strict)
    end = _end(scan, layout, offset, sizes, types, size, partial)
    if not end.complete:
        findings.add(
            "truncated",
            "the file ends before it should; what is complete is indexed",
            offset=end.resume,
        )
    source = _moof_source(scan, layout)
    periods = []
    sections = [s for s in scan.sections if s.moov >= 0 or s.batches] or [Section(-1)]
    if len(sections) > 1 and sections[0].moov < 0 and init is None:
        # Fragments before the only moov belong to it.
        sections[1].batches[:0] = sections[0].batches
        sections = sections[1:]
    for number, section in enumerate(sections):
        moov = scan.movies[section.moov] if section.moov >= 0 else init
        periods.append(
            _period(
                number, section, moov, scan, layout, end, size, states, findings, strict, source
            )
        )
    return Assembled(tuple(periods), findings.all(), end.complete, end.resume)


def movie_of(moov: tuple[Captured, Box, Movie] | None) -> Movie:
    """What a moov says; an empty movie where there is none."""
    return moov[2] if moov is not None else Movie(0, 0, True, ())


def _end(
    scan: Scan,
    layout: Layout,
    offset: Int64,
    sizes: Int64,
    types: npt.NDArray[np.uint32],
    size: int,
    partial: bool,
) -> _End:
    """Whether the file is whole; if not, what is left out and where to go on."""
    moofs = len(layout.moof)
    stop = int(offset[-1] + sizes[-1]) if len(offset) else scan.position
    whole = scan.to_end is not None or (stop <= size and scan.position >= size)
    whole &= scan.stopped is None and (not scan.carried or scan.to_end is not None)
    if whole and moofs and types[-1] != MOOF:
        return _End(True, size, moofs)
    if moofs:
        last = moofs - 1
        behind = int(layout.start[last])
        has_data = bool(layout.own_last[last] >= layout.own_first[last])
        if whole and (has_data or not _samples_in(scan, last)):
            return _End(True, size, moofs)
        if (stop > size and int(layout.stop[last]) > size) or not has_data:
            return _End(False, behind, moofs if partial else last)
    if whole:
        return _End(True, size, moofs)
    # An unfinished box: go on from it, or from the boxes that introduce its fragment.
    if stop > size and len(offset):
        return _End(False, int(offset[-1]), moofs)
    resume = scan.position
    index = len(offset) - 1
    lead = {hop.code(name) for name in ("styp", "sidx", "emsg", "prft")}
    while index >= 0 and int(types[index]) in lead and offset[index] + sizes[index] == resume:
        resume = int(offset[index])
        index -= 1
    return _End(False, resume, moofs)


def _samples_in(scan: Scan, moof: int) -> bool:
    for section in reversed(scan.sections):
        for batch in reversed(section.batches):
            mine = batch.trafs.moof[batch.runs.traf] == moof
            if mine.any():
                return bool((batch.runs.size[mine] > 0).any())
    return False


def _note_damage(scan: Scan, layout: Layout, findings: Findings, strict: bool) -> None:
    """Fragments that break the rules are a gap; where nothing else is there, an error."""
    damaged = sorted(scan.damaged)
    if not damaged:
        return
    offsets, _ = scan.moofs()
    if strict or (len(damaged) == len(offsets) and not scan.movies):
        raise _why(scan, damaged[0], int(offsets[damaged[0]]))
    findings.add(
        "damaged-fragment",
        f"{_why(scan, damaged[0], int(offsets[damaged[0]])).message}; the fragment is left out",
        offset=int(offsets[damaged[0]]),
        path="moof",
        count=len(damaged),
    )


def _why(scan: Scan, moof: int, offset: int) -> FormatError:
    """The error that the declared layouts raise for a damaged moof."""
    before = 0
    for buffer, places in scan.moof_bytes():
        if moof < before + len(places):
            at = int(places[moof - before])
            size = int(scan.moofs()[1][moof])
            try:
                parse_box(buffer[at : at + size], offset=offset, strict=True)
            except FormatError as error:
                return error
        before += len(places)
    return MalformedBox("a movie fragment breaks the rules", path="moof", offset=offset)


def _moof_source(scan: Scan, layout: Layout) -> MoofBytes:
    """Bytes of moofs by their offsets, from the buffers that the scan kept."""
    offsets, sizes = scan.moofs()
    buffers = scan.moof_bytes()
    edges = np.cumsum([len(places) for _, places in buffers]) if buffers else np.zeros(0, np.int64)

    def read(wanted: Int64) -> tuple[bytes, Int64]:
        index = np.searchsorted(offsets, wanted)
        parts = []
        owner = np.searchsorted(edges, index, side="right")
        # Rows rise with their moofs, so that each buffer is asked once.
        for number in np.unique(owner).tolist():
            buffer, places = buffers[number]
            mine = index[owner == number]
            first = int(edges[number - 1]) if number else 0
            parts.append(hop.join(buffer, places[mine - first], sizes[mine]))
        return b"".join(parts), sizes[index]

    return read


def _period(
    number: int,
    section: Section,
    moov: tuple[Captured, Box, Movie] | None,
    scan: Scan,
    layout: Layout,
    end: _End,
    size: int,
    states: dict[int, TrackState] | None,
    findings: Findings,
    strict: bool,
    source: MoofBytes,
) -> Period:
    movie = movie_of(moov)
    states = {} if states is None else states
    heads: dict[int, tuple[FragmentTable, SyncTable, SampleRuns, SampleTable | None]] = {}
    if moov is not None and section.moov >= 0:
        heads = _progressive(moov[1], movie, size, states, findings)
    tables = _fragments(section.batches, layout, end, states, findings, strict)
    defaults = {t.id: t.defaults for t in movie.tracks if t.defaults is not None}
    infos = {info.id: info for info in movie.tracks}
    for track_id in tables:
        infos.setdefault(track_id, TrackInfo.unknown(track_id))
    tracks = []
    for track_id, info in infos.items():
        shift = info.shift(movie.timescale)
        head = heads.get(track_id)
        fragments, sync = tables.get(track_id, (FragmentTable.empty(), SyncTable.empty()))
        _note_edits(info, findings)
        loader = _loader(track_id, fragments, source, defaults)
        samples = None
        if head is not None:
            virtual, first_sync, runs, samples = head
            loader = _progressive_loader(runs, virtual, loader)
            if len(fragments):
                samples = None
                fragments = FragmentTable.concat([virtual, fragments])
                sync = merged([first_sync, sync])
            else:
                fragments, sync = virtual, first_sync
        tracks.append(
            TrackIndex(
                info,
                fragments,
                sync,
                shift=shift,
                period=number,
                load_samples=loader,
                samples=samples,
            )
        )
    own = moov if section.moov >= 0 else None
    return Period(number, init_ranges(own, scan), movie, tuple(tracks))


def init_ranges(moov: tuple[Captured, Box, Movie] | None, scan: Scan) -> tuple[ByteRange, ...]:
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
    return tuple(sorted(ranges))


def _progressive(
    moov: Box, movie: Movie, size: int, states: dict[int, TrackState], findings: Findings
) -> dict[int, tuple[FragmentTable, SyncTable, SampleRuns, SampleTable | None]]:
    """The samples that the moov itself names, by track."""
    found = {}
    infos = {info.id: info for info in movie.tracks}
    for trak in moov.find_all("trak"):
        tkhd, stbl = trak.find("tkhd"), trak.find("mdia/minf/stbl")
        if tkhd is None or stbl is None or tkhd.get("track_ID") not in infos:
            continue
        info = infos[tkhd["track_ID"]]
        runs = read_sample_runs(stbl, info.id, findings)
        if runs is None:
            continue
        fragments, sync, samples = virtual_fragments(runs, info.timescale, size)
        outside = int((fragments.data_stop > size).sum())
        if outside:
            findings.add(
                "data-outside",
                "samples lie past the end of the file",
                path="moov/trak/mdia/minf/stbl",
                track=info.id,
                count=outside,
            )
        found[info.id] = (fragments, sync, runs, samples)
        state = states.setdefault(info.id, TrackState())
        state.samples, state.rows = runs.count, len(fragments)
        state.next_dts = int(fragments.dts[-1] + fragments.duration[-1])
    return found


def _fragments(
    batches: list[Batch],
    layout: Layout,
    end: _End,
    states: dict[int, TrackState],
    findings: Findings,
    strict: bool,
) -> dict[int, tuple[FragmentTable, SyncTable]]:
    trafs, runs, points = _joined(batches, end.moofs)
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
    return resolve(trafs, runs, points, layout, states, findings, strict=strict)


def _joined(batches: list[Batch], moofs: int) -> tuple[Trafs, Runs, SyncPoints]:
    """All batches as one, less the fragments from number `moofs` on."""
    trafs_before = runs_before = 0
    parts: tuple[list[Trafs], list[Runs], list[SyncPoints]] = ([], [], [])
    for batch in batches:
        trafs, runs, points = batch.trafs, batch.runs, batch.points
        parts[0].append(trafs)
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
    return trafs, runs, points


def _loader(
    track: int,
    fragments: FragmentTable,
    source: MoofBytes,
    defaults: Mapping[int, SampleDefaults],
) -> Callable[[int, int], SampleTable]:
    def load(start: int, stop: int) -> SampleTable:
        return samples_of(track, fragments.rows(slice(start, stop)), source, defaults)

    return load


def _progressive_loader(
    runs: SampleRuns, virtual: FragmentTable, rest: Callable[[int, int], SampleTable]
) -> Callable[[int, int], SampleTable]:
    def load(start: int, stop: int) -> SampleTable:
        n = len(virtual)
        parts = []
        if start < min(stop, n):
            rows = virtual.rows(slice(start, min(stop, n)))
            first = int(rows.sample_start[0])
            parts.append(runs.expand(first, int(rows.sample_start[-1] + rows.sample_count[-1])))
        if stop > n:
            parts.append(rest(max(start, n) - n, stop - n))
        return SampleTable.concat(parts)

    return load


def _note_edits(info: TrackInfo, findings: Findings) -> None:
    shown = [edit for edit in info.edits if edit.media_time >= 0]
    if len(shown) > 1 or (
        shown and any(e.media_time < 0 for e in info.edits[info.edits.index(shown[0]) :])
    ):
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
