"""Simple files in one call of the C extension: what small files cost is mostly calls.

The C extension (native/simple_file.c) reads a strict list of what is usual, and declines all else:
then the general way says what a file means. It never decides it here either: what the headers of
a track say is taken from an index that the general way made, of the same bytes or the first
fragments of them, and without a finding. So both give the same index; without the C extension
there is the general way alone.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fragdex.boxes import parse_box
from fragdex.byterange import ByteRange, coalesce
from fragdex.fragments.findings import Findings
from fragdex.fragments.table import (
    FAR,
    SPARE,
    FragmentFlags,
    FragmentTable,
    Int64,
    SampleTable,
    SyncTable,
)
from fragdex.fragments.track_info import Edit, Movie, SampleGroup, TrackInfo
from fragdex.indexing import native, progressive
from fragdex.indexing.groups import movie_groups
from fragdex.indexing.moov import LEFT
from fragdex.indexing.movie import countable, known_duration
from fragdex.indexing.progressive import SampleRuns, read_sample_runs
from fragdex.indexing.samples import FragmentSamples, MoofDecoder, MoofStore
from fragdex.indexing.shapes import Shapes
from fragdex.indexing.shown import settled_shift
from fragdex.seeking.model import FileInfo, How, Index, Period, SampleLoader, Track
from fragdex.sources import Source

MOST_HEADERS = 256
"""Headers of tracks that are remembered from file to file, of 4 KiB at most."""
MANY_FRAGMENTS, FEW_FRAGMENTS, MOST_READ = 256, 4, 16 << 20
"""Of so many fragments a few, of so many bytes at most, tell what the headers say."""
FEW_SAMPLES = 1 << 13
"""Samples that are passed to come to others; after so many, tables are read once and bisected."""
NEAR, IN_EACH_PAGE = 1, 2
"""How moofs lie that are too near to be read one by one: some pages have none, or all have one."""
_TABLE, _SYNC = 12, 7
"""Columns of int64 of a fragment and of a sync table."""

Maker: TypeAlias = Callable[..., TrackInfo]
_HEADERS: dict[bytes, Maker] = {}
_VARYING = ("media_duration", "edits", "declared_bit_rate", "declared_peak_bit_rate")
"""Fields of a `TrackInfo` that differ between files of one encoder."""
_ZERO = Fraction(0)
_OF_MOOV = "stbl", True, "a progressive file: the moov names every sample"
_OF_MOOFS = "boxes", True, "every fragment was read"
_ROLL_DESCRIPTION = bytes.fromhex("01000000") + b"roll" + struct.pack(">2I", 2, 1)
_ROLL_RUN = bytes(4) + b"roll" + struct.pack(">I", 1)


class Columns(NamedTuple):
    """Columns of int64 one after the other: their memory, rows, and rows that there is room for."""

    memory: bytearray
    rows: int
    room: int

    def read(self, columns: int) -> Int64:
        """Shape (columns, rows)."""
        whole = np.frombuffer(self.memory, np.int64, columns * self.room)
        part = whole.reshape(columns, self.room)[:, : self.rows]
        return part.copy() if self.room > 2 * self.rows + SPARE else part


class SimpleTrack(NamedTuple):
    """A track of a simple file: numbers of its headers, and columns."""

    id: int
    timescale: int
    duration: int
    rates: tuple[int, int] | None
    headers: bytes
    edits: bytes | None
    group_descriptions: bytes | None
    groups: bytes | None
    stbl: tuple[int, int]
    table: Columns
    sync: Columns


class SimpleFile(NamedTuple):
    """A simple file as the C extension reads it."""

    moov_at: int
    moov: bytes
    brand_at: int
    brand_size: int
    timescale: int
    duration: int
    requests: int
    bytes_read: int
    box_bytes: int
    tracks: tuple[tuple[Any, ...], ...]
    moofs: tuple[tuple[Any, ...], bytearray | None] | None
    view: memoryview | None = None

    @property
    def decoder(self) -> MoofDecoder | None:
        """What decodes the moofs again; None: there is none."""
        if self.moofs is None:
            return None
        columns, joined = self.moofs
        offsets, sizes = Columns(*columns).read(2)
        places, buffer = offsets, self.view
        if joined is not None:
            places, buffer = np.cumsum(sizes) - sizes, memoryview(joined)
        assert buffer is not None
        return MoofDecoder(MoofStore(offsets, sizes, [(buffer, places)]), Shapes())


def read_simple_file(source: Source) -> SimpleFile | None:
    """A local file whose reads are not limited, if it is simple; else None."""
    limited = source.max_bytes is not None or source.max_requests is not None
    if native.compiled is None or source.remote or limited or not source.size:
        return None
    descriptor = source.fileno() if native.walks_files else None
    read: Any = NEAR
    most = progressive.MAX_VIRTUAL_FRAGMENTS
    view = None
    if descriptor is not None:
        read = native.compiled.simple_file(descriptor, source.size, None, most, False)
    if read in (NEAR, IN_EACH_PAGE):  # it cannot be read so, or its fragments are dense
        view = source.view()
        if view is None:
            return None
        by_chunks = read == IN_EACH_PAGE
        given, passed = (descriptor, None) if by_chunks else (view, source.passed)
        read = native.compiled.simple_file(given, source.size, passed, most, by_chunks)
    if not read:
        return None
    simple = SimpleFile(*read)._replace(view=view)
    source.note_read(simple.bytes_read, simple.requests)
    return simple


def index_of_simple(simple: SimpleFile, source: Source) -> Index | None:
    """The index of a simple file; None: a header is not known yet, or something is unusual."""
    tracks = [SimpleTrack(*track) for track in simple.tracks]
    makers = [_HEADERS.get(track.headers) for track in tracks]
    if None in makers:
        return None
    infos = []
    for track, make in zip(tracks, makers, strict=True):
        assert make is not None
        info = _info(track, make)
        if info is None:
            return None
        infos.append(info)
    decoder, size = simple.decoder, source.size or 0
    duration = known_duration(simple.duration)
    movie = Movie(simple.timescale, duration, decoder is not None, tuple(infos))
    findings = Findings()
    made = [
        _track(track, info, movie, simple, decoder, size, findings)
        for track, info in zip(tracks, infos, strict=True)
    ]
    if None in made or findings.all():
        return None
    return Index(
        FileInfo(source.name, size, None, source.etag, source.mtime_ns),
        How(
            *(_OF_MOOV if decoder is None else _OF_MOOFS),
            simple.requests,
            simple.bytes_read,
            max(0, simple.bytes_read - simple.box_bytes),
        ),
        (Period(0, _init(simple), movie, tuple(filter(None, made))),),
        resume_offset=size,
    )


def first_fragments(simple: SimpleFile) -> int:
    """Where some fragments of a simple file end that has many more; 0: it has not, or is dense."""
    if simple.moofs is None:
        return 0
    places = Columns(*simple.moofs[0]).read(2)[0]
    if len(places) <= MANY_FRAGMENTS:
        return 0
    stop = int(places[FEW_FRAGMENTS])
    return stop if simple.moov_at < places[0] and stop <= MOST_READ else 0


def remember_headers(simple: SimpleFile, index: Index) -> None:
    """Remember what the headers of a simple file mean, by its index of the general way."""
    if index.findings or not index.complete or len(index.periods) != 1:
        return
    infos = index.periods[0].movie.tracks
    if len(infos) != len(simple.tracks):
        return
    for track, info in zip(map(SimpleTrack._make, simple.tracks), infos, strict=True):
        if info.id != track.id:
            return
        if len(_HEADERS) >= MOST_HEADERS:
            _HEADERS.clear()
        average, peak = track.rates or (0, 0)
        said = info.declared_bit_rate, info.declared_peak_bit_rate
        if track.rates is not None and said != (average or None, peak or None):
            continue  # what is damaged around them counts
        values = {one.name: getattr(info, one.name) for one in fields(TrackInfo)}
        for name in _VARYING[: 4 if track.rates is not None else 2]:
            del values[name]
        _HEADERS[track.headers] = partial(TrackInfo, **values)


def _info(track: SimpleTrack, make: Maker) -> TrackInfo | None:
    edits = _edits(track.edits) if track.edits is not None else ()
    if edits is None:
        return None
    duration = known_duration(track.duration)
    if track.rates is None:
        return make(media_duration=duration, edits=edits)
    average, peak = track.rates
    return make(
        media_duration=duration,
        edits=edits,
        declared_bit_rate=average or None,
        declared_peak_bit_rate=peak or None,
    )


def _edits(elst: bytes) -> tuple[Edit, ...] | None:
    """The edits of an edit list; None where one is unusual."""
    edits = tuple(
        Edit(countable(duration), time, whole + part / 65536)
        for duration, time, whole, part in struct.iter_unpack(
            ">QqhH" if elst[0] else ">IihH", elst[8:]
        )
    )
    # At most one, at its own speed, and an empty one before it.
    usual = not edits or (
        len(edits) <= 2
        and -1 <= edits[-1].media_time < FAR
        and edits[-1].rate == 1
        and all(edit.duration < FAR for edit in edits)
        and (len(edits) == 1 or edits[0].media_time == -1)
    )
    return edits if usual else None


def _track(
    track: SimpleTrack,
    info: TrackInfo,
    movie: Movie,
    simple: SimpleFile,
    decoder: MoofDecoder | None,
    size: int,
    findings: Findings,
) -> Track | None:
    table, sync = Columns(*track.table), Columns(*track.sync)
    flags = np.full(table.rows, FragmentFlags.VIRTUAL if decoder is None else 0, np.uint32)
    fragments = FragmentTable(*(*table.read(_TABLE), flags))
    runs = sync.read(_SYNC)
    if decoder is None and sync.rows > 1:  # those of fragments are joined as they are read
        joined = native.join_ordered_sync(runs)
        if joined is None:
            return None
        runs = joined
    groups = _groups(track, simple.moov)
    load: SampleLoader
    if decoder is None:
        places = fragments.sample_start, fragments.sample_count
        load = MoovSamples(simple.moov, track.stbl, track.id, size, *places)
    else:
        defaults = {one.id: one.defaults for one in movie.tracks if one.defaults is not None}
        load = FragmentSamples(track.id, fragments, decoder, defaults)
    edits = info.edits
    if not edits:
        shift = _ZERO
    elif (
        len(edits) == 1
        and edits[0].duration
        and decoder is None
        and _begins_with(info, edits[0], fragments)
    ):
        shift = Fraction(-edits[0].media_time)
    else:
        shift = settled_shift(info, movie, fragments, load, findings)
    return Track(
        info,
        fragments,
        SyncTable(*runs),
        shift=shift,
        movie_timescale=movie.timescale,
        period=0,
        groups=groups,
        load_samples=load,
    )


def _begins_with(info: TrackInfo, edit: Edit, fragments: FragmentTable) -> bool:
    """Whether an edit shows samples, of pictures from the first one on."""
    if edit.media_time < 0:
        return False
    return info.kind != "video" or int(fragments.cts_min.min()) == edit.media_time


def _groups(track: SimpleTrack, moov: bytes) -> tuple[SampleGroup, ...]:
    described, named = track.group_descriptions, track.groups
    if described is None or named is None:
        return ()
    # One distance for all samples, as encoders of AAC write it.
    one = len(described) == 18 and len(named) == 20
    if one and described[:16] == _ROLL_DESCRIPTION and named[:12] == _ROLL_RUN:
        count, index = struct.unpack_from(">2I", named, 12)
        if count and index == 1:
            distance = int.from_bytes(described[16:], "big", signed=True)
            return (SampleGroup("roll", 0, count, distance),)
    at, size = track.stbl
    return movie_groups(parse_box(moov[at : at + size], leave=LEFT), 0)


def _init(simple: SimpleFile) -> tuple[ByteRange, ...]:
    ranges = [ByteRange.of(simple.moov_at, len(simple.moov))]
    if simple.brand_size:
        ranges.append(ByteRange.of(simple.brand_at, simple.brand_size))
    return tuple(coalesce(ranges))


class MoovSamples:
    """The samples of a track that a moov names, read from its sample tables when one is needed.

    Args:
        stbl: place and size of the track's stbl in them.
        sample_start, sample_count: of the rows of the fragment table.
    """

    __slots__ = ("_args", "_runs")

    def __init__(
        self,
        moov: bytes,
        stbl: tuple[int, int],
        track: int,
        size: int,
        sample_start: Int64,
        sample_count: Int64,
    ) -> None:
        self._args = moov, stbl, track, size, sample_start, sample_count
        self._runs: SampleRuns | None = None

    def __call__(self, start: int, stop: int) -> SampleTable:
        """Of rows start to stop (exclusive)."""
        moov, (at, length), track, size, sample_start, sample_count = self._args
        stop = min(stop, len(sample_start))
        if start >= stop:
            return SampleTable.empty()
        first, last = int(sample_start[start]), int(sample_start[stop - 1] + sample_count[stop - 1])
        if self._runs is None and (last <= FEW_SAMPLES or not first):
            written = native.simple_samples(moov, at, length, first, last)
            if written is not None:
                return SampleTable(*(*written[0], written[1]))
        if self._runs is None:
            stbl = parse_box(moov[at : at + length], leave=LEFT)
            self._runs = read_sample_runs(stbl, track, Findings(), file_end=size)
            assert self._runs is not None
        return self._runs.expand(first, last)

    def __reduce__(self) -> tuple[Any, ...]:
        return MoovSamples, self._args
