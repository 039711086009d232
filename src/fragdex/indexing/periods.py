"""What one moov governs becomes a period of the index."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import field
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fragdex.boxes import Box
from fragdex.boxes.fragments import SAMPLE_FLAGS, TFHD, TRUN
from fragdex.boxes.layout import BoxLayout
from fragdex.byterange import ByteRange, coalesce
from fragdex.errors import LimitExceeded
from fragdex.fragments.findings import Findings
from fragdex.fragments.table import NULL, FragmentFlags, FragmentTable, Int64, SyncTable
from fragdex.fragments.track_info import Movie, SampleGroup, TrackInfo
from fragdex.indexing.access import every_sample
from fragdex.indexing.batch import TFHD_CODE, TRAF, TRUN_CODE
from fragdex.indexing.beside import marked
from fragdex.indexing.codecs import body
from fragdex.indexing.descriptions import (
    descriptions_of_fragments,
    descriptions_of_tables,
    several_descriptions,
)
from fragdex.indexing.fragment_batches import Section
from fragdex.indexing.groups import movie_groups
from fragdex.indexing.native_plain import inside_of
from fragdex.indexing.positions import Layout
from fragdex.indexing.progressive import (
    NEGATIVE_DURATION,
    SampleRuns,
    read_sample_runs,
    virtual_fragments,
)
from fragdex.indexing.resolve import TrackState
from fragdex.indexing.restarts import Part, parted
from fragdex.indexing.runs import DECIDING, DEPENDS, DEPENDS_AND_SYNC, column_of, fixed_fields
from fragdex.indexing.samples import BothSamples, FragmentSamples, MoofBytes, MoofDecoder
from fragdex.indexing.scan import Captured, Scan
from fragdex.indexing.shapes import KnownShapes
from fragdex.indexing.shown import settled_shift
from fragdex.indexing.sync import Expansion, merged
from fragdex.record import record
from fragdex.seeking.model import Period, SampleLoader, Track

FRAGMENTS = 4
"""Fragments of a track whose flags are looked at: the first, the last, and between."""


class _Run(NamedTuple):
    """What a trun says of flags: those of its traf, of its first sample, and of each."""

    default: int | None
    first: int | None
    samples: int
    flags: Any


Known: TypeAlias = dict[int, dict[int, list[_Run]]]
"""Offset of a moof → track_ID → its runs."""


def report_doubts(
    info: TrackInfo,
    fragments: FragmentTable,
    sync: SyncTable,
    stbl: Box | None,
    moofs: MoofBytes | None,
    findings: Findings,
    known: Known,
) -> None:
    """Note where a track of pictures marks samples sync that say themselves they are not.

    Args:
        moofs: the bytes of its moofs; None: none of them has such a sample.
        known: what the moofs that were looked at for other tracks say; they are not read again.
    """
    if info.kind != "video" or every_sample(info.kind, info.format, info.codec):
        return
    depends = _depending_in(stbl, sync)
    if moofs is not None:
        depends += _depending(info, fragments, moofs, known)
    if depends:
        findings.add(
            "sync-depends",
            "samples marked sync say that they depend on others; seek with verified=True",
            path="moov/trak/mdia/minf/stbl/sdtp" if stbl is not None else "moof/traf/trun",
            track=info.id,
            count=depends,
        )
    counts = fragments.sample_count
    if (counts == NULL).any() or not len(sync):
        return
    offsets = sync.cts - sync.dts
    if int(sync.count.sum()) == int(counts.sum()) > 1 and (offsets != offsets[0]).any():
        findings.add(
            "sync-reordered",
            "every picture is marked sync, but they are displayed in another order than decoded, "
            "so some depend on others; seek with verified=True",
            track=info.id,
        )


def _depending(info: TrackInfo, fragments: FragmentTable, moofs: MoofBytes, known: Known) -> int:
    """Samples of some fragments that are sync and depend on others."""
    depending = 0
    if not len(fragments) or fragments.moof_offset[-1] == NULL:
        return 0  # those of the moov stand in front
    virtual = (fragments.flags & FragmentFlags.VIRTUAL) != 0
    rows = np.flatnonzero(~virtual & (fragments.first_sync >= 0) & (fragments.moof_offset != NULL))
    if not len(rows):
        return 0
    chosen = sorted({at * (len(rows) - 1) // (FRAGMENTS - 1) for at in range(FRAGMENTS)})
    offsets = fragments.moof_offset[rows[chosen]].tolist()
    missing = np.array([offset for offset in offsets if offset not in known], np.int64)
    data, sizes = moofs(missing)
    view, at = memoryview(data), 0
    for offset, size in zip(missing.tolist(), sizes.tolist(), strict=True):
        known[offset] = _runs(view[at : at + size])
        at += size
    for offset in offsets:
        for run in known[offset].get(info.id, ()):
            for flags in _flags(run, info):
                depending += int((flags & DEPENDS_AND_SYNC == DEPENDS).sum())
    return depending


_END = (0, 0, 0, 0, 1, False, False)
"""Stands after the boxes of a moof."""


def _runs(moof: memoryview) -> dict[int, list[_Run]]:
    """What the runs of a moof say of flags, by track_ID; nothing where it breaks the rules."""
    by_track: dict[int, list[_Run]] = {}
    inside = inside_of(moof, 0, len(moof))
    if inside is None:
        return by_track
    header: dict[str, int] | None = None
    waiting: list[tuple[int, int]] = []
    in_traf = False
    for offset, size, kind, head, depth, _, _ in (*inside.rows, _END):
        if depth == 1:
            # A traf ends here; its tfhd may stand after its runs.
            if header is not None and waiting:
                runs = (_run(moof, *place, header.get("default_sample_flags")) for place in waiting)
                by_track.setdefault(header["track_ID"], []).extend(run for run in runs if run)
            in_traf, header, waiting = kind == TRAF, None, []
        elif in_traf and depth == 2 and kind == TFHD_CODE and header is None:
            header = _fields(moof, offset + head, size - head, TFHD)
        elif in_traf and depth == 2 and kind == TRUN_CODE:
            waiting.append((offset + head, size - head))
    return by_track


def _run(moof: memoryview, body: int, room: int, default: int | None) -> _Run | None:
    """What the trun whose body starts at `body` says of flags."""
    fields = _fields(moof, body, room, TRUN)
    if fields is None:
        return None
    count, first = fields["sample_count"], fields.get("first_sample_flags")
    word = fields["flags"]
    if not word & SAMPLE_FLAGS:
        return _Run(default, first, count, None)
    columns, start = (word & 0xF00).bit_count(), fields["width"]
    if start + 4 * columns * count > room:
        return None
    rows = np.frombuffer(moof, ">u4", columns * count, body + start).reshape(count, columns)
    flags = column_of(rows, word, SAMPLE_FLAGS)
    return _Run(default, first, count, flags)


def _fields(moof: memoryview, body: int, room: int, layout: BoxLayout) -> dict[str, int] | None:
    """Fixed fields of a tfhd or trun, its flags, and the bytes of all these."""
    word = int.from_bytes(moof[body : body + 4], "big") & (0xFF000000 | DECIDING[layout.code])
    if room < 4 or word >> 24 > 1:
        return None
    fixed = fixed_fields(layout, word)
    if room < fixed.width:
        return None
    fields = dict(zip(fixed.names, fixed.codec.unpack_from(moof, body + 4), strict=True))
    fields["flags"], fields["width"] = word & 0xFFFFFF, fixed.width
    return fields


def _flags(run: _Run, info: TrackInfo) -> Iterator[Any]:
    """Flags that a run of a track says; one for many samples stands for itself."""
    default = run.default
    if default is None and info.defaults is not None:
        default = info.defaults.flags
    if run.flags is not None:
        yield run.flags[0 if run.first is None else 1 :]
    elif default is not None and run.samples > (run.first is not None):
        yield np.array([default])
    if run.first is not None:
        yield np.array([run.first])


def _depending_in(stbl: Box | None, sync: SyncTable) -> int:
    """Sync samples of a progressive file that its sdtp says depend on others (8.6.4)."""
    sdtp = stbl.find("sdtp") if stbl is not None else None
    if sdtp is None:
        return 0
    depends = np.frombuffer(body(sdtp)[4:], np.uint8) >> 4 & 3 == 1
    before = np.concatenate([[0], np.cumsum(depends)])
    # A run of neighbours is counted by its ends; others are single or few.
    depending = 0
    near = (sync.sample_step <= 1) & (sync.sample >= 0)
    low = np.minimum(sync.sample[near], len(depends))
    high = np.minimum(low + sync.count[near], len(depends))
    depending += int((before[high] - before[low]).sum())
    for row in np.flatnonzero(~near & (sync.sample >= 0)).tolist():
        first, step = int(sync.sample[row]), int(sync.sample_step[row])
        stop = min(first + step * int(sync.count[row]), len(depends))
        depending += int(depends[first:stop:step].sum())
    return depending


Moov = tuple[Captured, Movie]
"""A moov as it was captured, and its values."""


@record(slots=True)
class Rules:
    """What holds for all periods of a file.

    Attributes:
        layout: gives that of the whole file, laid out once.
        between: gives where boxes at the top level begin that are content.
        moofs: fragments from this number on are left out.
        strict: keep the positions of the rule where they miss the media data.
        expansion: bounds what is written out of sync samples that overlap.
        shapes: of most moofs.
        parts_clocks: whether a period begins where a clock begins again.
        short: set where a moov names samples past the end of the file.
        decoder: of moofs, for samples that are requested later.
    """

    layout: Callable[[], Layout]
    between: Callable[[], Int64]
    moofs: int
    size: int
    strict: bool
    source: MoofBytes
    findings: Findings
    tables: int = 1
    expansion: Expansion = field(default_factory=Expansion)
    shapes: KnownShapes | None = None
    parts_clocks: bool = True
    short: bool = False
    decoder: MoofDecoder = field(init=False)

    def __post_init__(self) -> None:
        self.decoder = MoofDecoder(self.source, self.shapes)


@record(frozen=True, slots=True)
class _Head:
    """The samples of a track that the moov itself names."""

    fragments: FragmentTable
    sync: SyncTable
    runs: SampleRuns
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


def periods(
    number: int, section: Section, moov: Moov | None, scan: Scan, rules: Rules
) -> list[Period]:
    """The periods of one section of a scan: one, and another from where its clock restarts on.

    Args:
        moov: what governs them, from the file or from elsewhere; None: nothing does.
    """
    movie = movie_of(moov)
    own = moov if section.moov >= 0 else None
    heads = _heads(section, movie, rules) if own is not None else {}
    _note_section(section, rules.findings)
    tables = section.finish(rules.layout, rules.moofs, rules.findings, strict=rules.strict)
    infos = infos_of(movie)
    for track_id in sorted(tables):
        infos.setdefault(track_id, TrackInfo.unknown(track_id))
    for info in infos.values():
        _note_info(info, rules.findings)
    ranges = init_ranges(own, scan)
    several = (
        several_descriptions(moov[0].data, section.stbls) if moov is not None and tables else {}
    )
    made: list[Period] = []
    timescales = {track_id: info.timescale for track_id, info in infos.items()}
    whole = [Part(dict(tables), {})]
    for part in parted(tables, timescales, rules.findings) if rules.parts_clocks else whole:
        tracks = _tracks(number + len(made), part, section, infos, movie, heads, several, rules)
        made.append(Period(number + len(made), ranges, movie, tracks))
        heads = {}
    return made


def _tracks(
    number: int,
    part: Part,
    section: Section,
    infos: dict[int, TrackInfo],
    movie: Movie,
    heads: dict[int, _Head],
    several: dict[int, int],
    rules: Rules,
) -> tuple[Track, ...]:
    """The tracks of a period, of its fragments and the samples that the moov names.

    `several`: as `several_descriptions` gives them.
    """
    defaults = {t.id: t.defaults for t in movie.tracks if t.defaults is not None}
    tracks: list[Track] = []
    doubted: Known = {}
    odd = rules.between()
    for track_id, info in infos.items():
        fragments, sync = part.tables.get(track_id, (FragmentTable.empty(), SyncTable.empty()))
        try:
            sync = merged([sync], expansion=rules.expansion)
        except LimitExceeded as error:
            error.offset = int(fragments.moof_offset[0])
            raise
        load: SampleLoader = FragmentSamples(track_id, fragments, rules.decoder, defaults)
        head = heads.get(track_id)
        mine = part.groups(track_id, section.groups(track_id))
        if track_id in several and len(fragments):
            before, default = int(fragments.sample_start[0]), several[track_id]
            mine += descriptions_of_fragments(track_id, fragments, rules.source, default, before)
        if head is not None:
            virtual = head.fragments
            load = BothSamples(head.runs, virtual.sample_start, virtual.sample_count, load)
            mine = head.groups + mine
            if len(fragments):
                fragments = FragmentTable.concat([head.fragments, fragments])
                sync = merged([head.sync, sync], fragments.sample_start, expansion=rules.expansion)
            else:
                fragments, sync = head.fragments, head.sync
        fragments = marked(fragments, odd, section.more)
        stbl = section.stbls.get(track_id) if head is not None else None
        looked_at = rules.source if track_id in section.doubted else None
        report_doubts(info, fragments, sync, stbl, looked_at, rules.findings, doubted)
        tracks.append(
            Track(
                info,
                fragments,
                sync,
                shift=settled_shift(info, movie, fragments, load, rules.findings),
                movie_timescale=movie.timescale,
                period=number,
                groups=mine,
                load_samples=load,
            )
        )
    return tuple(tracks)


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
    heads = {}
    infos = infos_of(movie)
    for track_id, stbl in section.stbls.items():
        if track_id not in infos:
            continue
        runs = read_sample_runs(stbl, track_id, rules.findings, file_end=rules.size)
        if runs is None:
            continue
        timescale = infos[track_id].timescale
        fragments, sync = virtual_fragments(
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
        groups = movie_groups(stbl, runs.count)
        encryption = infos[track_id].encryption
        if encryption is not None and encryption.descriptions:
            groups += descriptions_of_tables(stbl, runs.count)
        heads[track_id] = _Head(fragments, sync, runs, groups)
        state = section.states.setdefault(track_id, TrackState())
        state.samples, state.rows = runs.count, len(fragments)
        state.next_dts = int(fragments.dts[-1] + fragments.duration[-1])
    return heads


def _outside_mdats(runs: SampleRuns, fragments: FragmentTable, layout: Layout) -> int:
    """Chunks of samples that do not lie in one mdat."""
    low, high = int(fragments.data_start.min()), int(fragments.data_stop.max())
    mdat = int(layout.mdat_start.searchsorted(low, side="right")) - 1
    if mdat >= 0 and high <= layout.mdat_stop[mdat]:
        return 0
    sizes = runs.bytes_between(np.append(runs.chunk_start, runs.count))
    mdats = np.searchsorted(layout.mdat_start, runs.chunk_offset, side="right") - 1
    stops = np.append(layout.mdat_stop, -1)[mdats]  # of chunks before every mdat: the -1
    return int(((runs.chunk_offset + sizes > stops) & (sizes > 0)).sum())


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
    wide = "an unsigned composition offset of 2^31 or more was read as signed"
    rest = "a trun has more bytes than its samples take; the rest is ignored"
    for code, message, count in (
        ("trun-rest", rest, section.loose),
        ("wide-composition-offset", wide, section.wide_offsets),
        ("negative-duration", NEGATIVE_DURATION, section.backward),
    ):
        if count:
            findings.add(code, message, path="moof/traf/trun", count=count)
    for track, name in sorted(section.unknown_defaults):
        findings.add(
            f"no-default-{name}",
            f"neither tfhd nor trex has a default sample {name}; 0 is used",
            path="moof/traf/tfhd",
            track=track,
        )


def _note_info(info: TrackInfo, findings: Findings) -> None:
    shown = [edit for edit in info.edits if edit.media_time >= 0]
    elst, track = "moov/trak/edts/elst", info.id
    if shown and info.edits[-1] is not shown[0]:
        message = "the edit list has more than one edit; seeks follow only the first"
        findings.add("many-edits", message, path=elst, track=track)
    if any(edit.rate != 1 for edit in shown):
        message = "an edit has a rate other than 1; it is played at rate 1"
        findings.add("edit-rate", message, path=elst, track=track)
    if not info.timescale:
        message = "the timescale is unknown or 0, so ticks cannot be converted to seconds"
        findings.add("no-timescale", message, path="moov/trak/mdia/mdhd", track=track)
