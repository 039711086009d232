"""Ready-made indexes inside files: sidx and mfra, believed only after a check."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from fragdex.box_header import read_header
from fragdex.boxes import parse_box
from fragdex.boxes.limits import MAX_LENT_ROWS, MAX_TRACKS
from fragdex.byterange import ByteRange
from fragdex.errors import FormatError
from fragdex.fragments.findings import Finding, Findings
from fragdex.fragments.table import NULL, FragmentTable, SyncTable
from fragdex.fragments.track_info import TrackInfo
from fragdex.indexing.assemble import assemble
from fragdex.indexing.periods import Moov, infos_of, init_ranges, movie_of
from fragdex.indexing.positions import LEAD, MOOF
from fragdex.indexing.reading import Head, read_on
from fragdex.indexing.remote import FIRST_GUESS
from fragdex.indexing.resolve import TrackState
from fragdex.indexing.scan import MEDIA_TYPES, SIDX, Scan
from fragdex.indexing.sync import expanded
from fragdex.seeking.model import FileInfo, How, Index, Period, Track
from fragdex.sources import Source

if TYPE_CHECKING:
    from fragdex.indexing.sidx_reading import Tables


MAX_READS = 32
"""Reads for sidx boxes that others point to; a hierarchy that needs more is walked."""
MAX_MFRA_READS = 3
"""Reads for an index from an mfra: the start, the end, and one of the last fragment."""
TAIL = (b"mfra", b"free", b"skip")
"""What may stand alone after the reach of a sidx."""
ENOUGH_READS = 2
"""Reads of a remote file with a sidx at its front after which no more is requested."""
SMALL_TAIL = 0.02
"""Part of a remote file after the reach of its sidx that is taken for an mfra without a look."""
ENOUGH_REFERENCES = 2
"""A sidx of fewer references stands before each fragment: hopping reads them all anyway."""

LEADS = frozenset(LEAD.tolist()) - {SIDX}
"""Boxes other than sidx that introduce a fragment."""


def by_sidx(source: Source, scan: Scan, head: Head, init: Moov | None) -> Index | None:
    """The index that the sidx boxes in front of a file tell, or None where they are not trusted."""
    moov = scan.movies[0] if scan.movies else init
    if not any(box.type == SIDX for box in scan.captured):
        return None
    top = np.concatenate(scan.tops())
    offsets, sizes, types = top["offset"], top["size"], top["type"]
    moofs = offsets[types == MOOF]
    first = int(moofs[0]) if len(moofs) else scan.position
    boxes = [c for c in scan.captured if c.type == SIDX and c.offset < first]
    if not boxes or source.size is None or len(scan.movies) > 1:
        return None
    if len(boxes) > MAX_TRACKS:
        head.doubts += (Finding("sidx-limit", "more sidx boxes than tracks; they are not used"),)
        return None
    # Most files have no sidx, and do without its reader.
    from fragdex.indexing.sidx_reading import SidxReader, tables

    tops = zip(offsets.tolist(), sizes.tolist(), types.tolist(), strict=True)
    reader = SidxReader([ByteRange.of(at, n) for at, n, kind in tops if kind in LEADS])
    for box in boxes:
        try:
            reader.add(parse_box(box.data, offset=box.offset))
        except FormatError:
            return None
    for _ in range(MAX_READS):
        need = reader.need
        if not need:
            break
        for part in need[:MAX_READS]:
            reader.feed(part.start, head.piece(source, part))
    segments = reader.segments()
    rows = {number: len(stream) for number, stream in segments.streams.items()}
    places = {int(stream.reference[0]) for stream in segments.streams.values() if len(stream)}
    if _too_many(rows, moov) or len(places) > MAX_READS:
        head.doubts += (
            Finding("sidx-limit", "the sidx applies to too many tracks; it is not used"),
        )
        return None
    heads = {
        place: head.at(place, 8) or source.read_up_to(ByteRange.of(place, 8)) for place in places
    }
    head.doubts += segments.doubts(size=source.size, heads=heads)
    if head.doubts or reader.need:
        return None
    if max(map(len, segments.streams.values())) < ENOUGH_REFERENCES:
        return None
    if not _box_behind(source, head, segments.covered_until):
        head.doubts += (
            Finding(
                "sidx-lie",
                "there is no box where the sidx says that its last fragment ends",
                offset=segments.covered_until,
                path="sidx",
            ),
        )
        return None
    findings = Findings(scan.findings.all() + segments.findings)
    found_tables = tables(segments, movie_of(moov), findings)
    return _approximate(
        "sidx", source, scan, head, moov, found_tables, segments.covered_until, findings
    )


def by_mfra(source: Source, scan: Scan, head: Head, init: Moov | None) -> Index | None:
    """The index that the mfra at the end of a remote file tells, or None where it is not trusted.

    Local files are walked: that costs milliseconds, and knows every sample.
    """
    moov = scan.movies[0] if scan.movies else init
    size = source.size
    if not source.remote or size is None or not scan.moof_count or len(scan.movies) != 1:
        return None
    from fragdex.indexing import mfra_reading

    tail = head.piece(source, ByteRange(max(0, size - FIRST_GUESS), size))
    wanted = mfra_reading.mfra_range(tail, size)
    if wanted is None:
        return None
    data = head.at(wanted.start, wanted.size) or head.piece(source, wanted)
    try:
        access = mfra_reading.read(parse_box(data, offset=wanted.start))
    except FormatError:
        return None
    if _too_many({track: len(entries) for track, entries in access.tracks.items()}, moov):
        head.doubts += (
            Finding("mfra-limit", "the mfra applies to too many tracks; it is not used"),
        )
        return None
    covered = size
    if source.requests < MAX_MFRA_READS:
        # The last moof proves the list, and tells where the last fragment ends.
        last = ByteRange(access.last_moof, min(access.last_moof + FIRST_GUESS, size))
        if head.at(last.start, 8) is None:
            head.piece(source, last)
        covered = last.start
    moofs, heads = {}, {}
    for place in {int(at) for t in access.tracks.values() for at in t.moof_offset[:64]} | {covered}:
        start = head.at(place, 8)
        if start is None:
            continue
        heads[place] = start
        header = read_header(start)
        whole = head.at(place, header.size) if header is not None else None
        if start[4:] == b"moof" and whole is not None:
            with suppress(FormatError):
                moofs[place] = parse_box(whole, offset=place)
    head.doubts += access.doubts(heads=heads, moofs=moofs, movie=movie_of(moov))
    if head.doubts:
        return None
    findings = Findings(scan.findings.all() + access.findings)
    found_tables = {
        track: _before(parts, covered)
        for track, parts in mfra_reading.tables(access, movie_of(moov), findings).items()
    }
    return _approximate("mfra", source, scan, head, moov, found_tables, covered, findings)


def _too_many(rows: Mapping[int, int], moov: Moov | None) -> bool:
    """Whether an index of so many rows a stream stands for too many streams, or lends too many."""
    tracks = movie_of(moov).tracks
    lent = sum(track.id not in rows for track in tracks) * max(rows.values(), default=0)
    return len(rows) > MAX_TRACKS or lent > max(MAX_LENT_ROWS, 4 * sum(rows.values()))


def _box_behind(source: Source, head: Head, covered: int) -> bool:
    """Whether a box can begin at `covered`, which is read where that is worth it.

    Sizes that are all a little wrong add up: the first fragment stands where it should, and what
    is after the last one is the middle of media data.
    """
    size = source.size or 0
    known = head.at(covered, 8)
    if known is None:
        if covered + 8 > size or _not_worth(source, size - covered):
            return True
        known = head.piece(source, ByteRange(covered, min(covered + 16, size)))
    header = read_header(known)
    if header is None:
        return False
    return int.from_bytes(header.type, "big") in MEDIA_TYPES or 8 <= header.size <= size - covered


def _not_worth(source: Source, behind: int) -> bool:
    """Whether what is after a sidx is too little to ask a server for."""
    return (
        source.remote
        and source.requests >= ENOUGH_READS
        and behind < (source.size or 0) * SMALL_TAIL
    )


def _only_tail(source: Source, head: Head, covered: int, size: int, findings: Findings) -> bool:
    """Whether nothing but an mfra or padding lies after `covered`."""
    known = head.at(covered, 8)
    if known is None:
        if _not_worth(source, size - covered):
            findings.add(
                "tail-unread",
                "what comes after the part that the file's own index covers was not read",
                offset=covered,
            )
            return True
        known = head.piece(source, ByteRange(covered, min(covered + 16, size)))
    header = read_header(known)
    return header is not None and header.type in TAIL and covered + header.size == size


def _before(parts: Tables, covered: int) -> Tables:
    """The rows of fragments that begin before a place."""
    fragments, sync = parts
    rows = int(np.searchsorted(fragments.offset, covered))
    return fragments.rows(slice(rows)), sync.rows(sync.fragment < rows)


def _approximate(
    method: str,
    source: Source,
    scan: Scan,
    head: Head,
    moov: Moov | None,
    tables: dict[int, Tables],
    covered: int,
    findings: Findings,
) -> Index | None:
    """An index of fragments alone; what lies after `covered` is walked.

    None where another moov is there.
    """
    movie = movie_of(moov)
    infos = infos_of(movie)
    size = source.size or 0
    complete, resume = True, size
    if covered < size and not _only_tail(source, head, covered, size, findings):
        states = {
            track: TrackState(_end(fragments), 0, len(fragments))
            for track, (fragments, _) in tables.items()
        }
        defaults = {t.id: t.defaults for t in movie.tracks if t.defaults is not None}
        rest = Scan(covered, defaults, states)
        need = rest.need
        before = -1
        while need is not None and need.start > before:
            before = need.start
            for start, data in head.pieces:
                if need is not None and start <= need.start < start + len(data):
                    rest.feed(data[need.start - start :], need.start)
                    need = rest.need
        if rest.need is not None and rest.position < size:
            read_on(source, rest)
        known = {one.offset for one, _ in scan.movies}
        other = next((one for one, _ in rest.movies if known and one.offset not in known), None)
        if other is not None:
            # One movie or two: only both parts together tell.
            message = f"a moov comes after the part that the {method} covers"
            head.doubts += (Finding(f"{method}-part", message, offset=other.offset),)
            return None
        more = assemble(rest, size, known=findings.all(), init=moov)
        if method == "sidx" and any(len(t.fragments) for t in more.periods[0].tracks):
            findings.add(
                f"{method}-short",
                f"the {method} does not cover the end; the rest was read from box headers",
                offset=covered,
            )
        complete, resume = more.complete, more.resume_offset
        findings = Findings(
            findings.all() + tuple(f for f in more.findings if f.code != "no-timescale")
        )
        for track in more.periods[0].tracks:
            if len(track.fragments):
                tables[track.id] = _behind(tables.get(track.id), track)
    tracks = []
    for track_id in infos.keys() | tables.keys():
        info = infos.get(track_id) or TrackInfo.unknown(track_id)
        fragments, sync = tables.get(track_id, (FragmentTable.empty(), SyncTable.empty()))
        tracks.append(
            Track(
                info,
                fragments,
                sync,
                shift=info.shift(movie.timescale),
                movie_timescale=movie.timescale,
                exact=False,
            )
        )
    order = {track_id: place for place, track_id in enumerate(infos)}
    tracks.sort(key=lambda track: order.get(track.id, len(order)))
    how = How(
        method,
        False,
        f"the file's own {method} was used: fragments are known, samples are not",
        source.requests,
        source.bytes_read,
    )
    period = Period(0, init_ranges(moov if scan.movies else None, scan), movie, tuple(tracks))
    return Index(
        FileInfo(source.name, size, None, source.etag, source.mtime_ns),
        how,
        [period],
        findings=findings.all(),
        complete=complete,
        resume_offset=resume,
    )


def _end(fragments: FragmentTable) -> int:
    return int(fragments.cts_end[-1]) if len(fragments) and fragments.cts_end[-1] != NULL else 0


def _behind(before: Tables | None, track: Track) -> Tables:
    """Walked fragments after approximate ones: their samples have no number in the track."""
    fragments = FragmentTable.of(
        track.fragments.columns() | {"sample_start": np.full(len(track.fragments), NULL)}
    )
    sync = expanded(track.sync_samples, track.fragments.sample_start)
    rows = 0 if before is None else len(before[0])
    sync = SyncTable.of(
        sync.columns() | {"sample": np.full(len(sync), NULL), "fragment": sync.fragment + rows}
    )
    if before is None:
        return fragments, sync
    whole = SyncTable.concat([before[1], sync])
    return (
        FragmentTable.concat([before[0], fragments]),
        whole.rows(np.argsort(whole.cts, kind="stable")),
    )
