"""The binary index: a header, a JSON part for what is small, then the columns; opened by one mmap.

docs/index-format.md gives the form to the byte. The header and the JSON part stand under one
CRC-32 that is tested at opening; each column has its own, which `verify` tests, so that opening
reads no column and copies nothing.

Tables are checked in integers that cannot wrap, by a few passes over whole columns: first each
number is compared with its bounds, so that the sum of two of them fits in 64 bits; then the tables
are compared with each other.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from os import PathLike
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from fragdex.byterange import ByteRange
from fragdex.errors import DamagedIndex, InvalidRange
from fragdex.formats.fidx_columns import (
    AnyTable,
    ColumnReader,
    ColumnWriter,
    GroupTable,
    TablePlaces,
)
from fragdex.formats.fidx_head import (
    DIGESTS,
    MAGIC,
    VERSION,
    begin_head,
    finish_head,
    least_version,
    parse_head,
)
from fragdex.formats.records import from_plain, integer, item, refuse, to_plain, truth
from fragdex.fragments.findings import Finding
from fragdex.fragments.pieces import ALGORITHM, MOST_BYTES, PieceDigests, PieceTable
from fragdex.fragments.table import FAR, NULL, FragmentTable, SampleTable, SyncTable, Table
from fragdex.fragments.track_info import Movie, SampleGroup, TrackInfo
from fragdex.seeking.model import FileInfo, How, Index, Period, Track
from fragdex.seeking.track import TrackTables
from fragdex.sources import Source, SourceLike, open_source
from fragdex.sources.files import write_file
from fragdex.sources.names_in_files import name_in_file

__all__ = [
    "MAGIC",
    "VERSION",
    "check_samples",
    "check_tables",
    "open_index",
    "pieces",
    "read",
    "refuse_other_media",
    "save",
    "verify",
    "write",
]


Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_SIGNED: Final = frozenset(("dts", "cts", "cts_min", "cts_end", "duration"))
"""Columns in ticks: they may be negative."""


def check_tables(
    track: int,
    fragments: FragmentTable,
    sync: SyncTable,
    groups: Sequence[SampleGroup],
    sample_rows: int | None,
    pointer: str,
) -> None:
    """Check the tables of one track, without its samples.

    Args:
        sample_rows: rows of its sample table; None where it has none.

    Raises:
        DamagedIndex: a number leaves its bounds, or two tables contradict each other.
    """
    _bounded(track, fragments, pointer)
    _bounded(track, sync, pointer)
    starts, counts = fragments.sample_start, fragments.sample_count
    numbered = not ((starts == NULL) | (counts == NULL)).any()
    total = int(starts[-1] + counts[-1]) if numbered and len(starts) else 0
    rules = {
        "bytes of samples start before they stop": _before(fragments),
        "sample numbers count the samples before": not numbered or _counted(starts, counts),
        "the samples are as many as the fragments say": sample_rows is None
        or (numbered and total == sample_rows),
        "fewer than 2^62 samples": total < FAR,
        "the first sync sample is one of its fragment": not (
            (counts != NULL) & (fragments.first_sync >= np.maximum(counts, 0))
        ).any(),
        "sync samples are in rows of the fragment table": not (
            (sync.fragment < 0) | (sync.fragment >= len(fragments))
        ).any(),
        "each run has a sync sample": not (sync.count < 1).any(),
        "runs are in order of time": not (sync.cts[1:] < sync.cts[:-1]).any(),
        "groups count samples": all(
            0 <= group.sample_start < FAR and 0 <= group.sample_count < FAR for group in groups
        ),
    }
    _need(track, rules, pointer)
    known = sync.dts != NULL
    rules = {
        "times fit in 64 bits": _reach(sync.cts, sync.step, sync.count, FAR)
        and _reach(sync.dts[known], sync.step[known], sync.count[known], FAR),
        "runs of several sync samples say which samples they are": _numbered(sync, numbered),
        "sync samples are samples of their fragments": _within(fragments, sync),
        "there are no more sync samples than samples": not numbered or _few(sync.count, total),
    }
    if numbered:
        known = sync.sample != NULL
        rules["runs of sync samples end inside the track"] = _reach(
            sync.sample[known], sync.sample_step[known], sync.count[known], total
        )
    _need(track, rules, pointer)


def check_samples(track: int, samples: SampleTable, pointer: str) -> None:
    """Check rows of a sample table.

    Raises:
        DamagedIndex: a number leaves its bounds.
    """
    _bounded(track, samples, pointer)
    if (samples.sync.view(np.uint8) > 1).any():
        raise _outside(track, "samples", "sync", "bytes 0 and 1", pointer)


def _need(track: int, rules: dict[str, bool], pointer: str) -> None:
    for rule, holds in rules.items():
        if not holds:
            raise DamagedIndex(
                f"the tables of track {track} contradict this: {rule}",
                path=pointer,
                advice="build the index again",
            )


def _outside(track: int, table: str, column: str, expected: str, pointer: str) -> DamagedIndex:
    return DamagedIndex(
        f"track {track} has numbers that no file has (column {column} of {table})",
        path=f"{pointer}/{table}",
        expected=expected,
        found="others",
        advice="build the index again",
    )


def _bounded(track: int, table: Table, pointer: str) -> None:
    for column in table.schema():
        values = getattr(table, column.name)
        if values.dtype != np.int64 or not len(values):
            continue
        least = -FAR + 1 if column.name in _SIGNED else -1 if column.stored == "sync" else 0
        # Nearly always two passes: the least value and the greatest one.
        if values.min() >= least and values.max() < FAR:
            continue
        bad = (values < least) | (values >= FAR)
        if column.nullable:
            bad &= values != NULL
        if bad.any():
            expected = f"{least} to {FAR - 1}"
            raise _outside(track, table.SCHEMA_NAME, column.stored, expected, pointer)


def _before(fragments: FragmentTable) -> bool:
    start, stop = fragments.data_start, fragments.data_stop
    return not (stop < start).any() and not ((start == NULL) != (stop == NULL)).any()


def _counted(starts: Int64, counts: Int64) -> bool:
    return not len(starts) or (
        int(starts[0]) == 0 and bool((starts[1:] - starts[:-1] == counts[:-1]).all())
    )


def _reach(first: Int64, step: Int64, count: Int64, end: int) -> bool:
    """Whether the last of each run is below `end`; the first ones are above −`FAR`."""
    several = count > 1
    if several.any():
        most = (end - 1 - first[several]) // (count[several] - 1)
        if (step[several] > most).any():
            return False
    return not (first >= end).any()


def _numbered(sync: SyncTable, known: bool) -> bool:
    several = sync.count > 1
    if not several.any():
        return True
    return known and not (several & ((sync.sample == NULL) | (sync.sample_step < 1))).any()


def _within(fragments: FragmentTable, sync: SyncTable) -> bool:
    first, count = fragments.sample_start[sync.fragment], fragments.sample_count[sync.fragment]
    known = (sync.sample != NULL) & (first != NULL) & (count != NULL)
    within = np.where(known, sync.sample, 0) - np.where(known, first, 0)
    return not (known & ((within < 0) | (within >= count))).any()


def _few(count: Int64, total: int) -> bool:
    if not len(count):
        return True
    # The sum itself may wrap where the greatest one does not.
    many = int(count.max()) * len(count) >= FAR
    return (sum(count.tolist()) if many else int(count.sum())) <= total


# ---- writing


def write(index: Index, *, samples: bool = False) -> bytes:
    """The binary index as bytes.

    Args:
        samples: include the sample tables.

    Raises:
        InexactIndex: samples are requested that the index does not hold.
    """
    return b"".join(pieces(index, samples=samples))


def save(index: Index, path: str | PathLike[str], *, samples: bool = False) -> None:
    """Write the binary index to a file: atomically, never half of one.

    Args:
        path: where to; an older file there is replaced at the very end and keeps its mode bits.
        samples: include the sample tables.

    Raises:
        InexactIndex: samples are requested that the index does not hold.
        OSError: the file cannot be written.
    """
    write_file(path, pieces(index, samples=samples))


def pieces(index: Index, *, samples: bool = False) -> Iterator[bytes | memoryview]:
    """`write` piece by piece: columns are handed on as they lie in memory."""
    columns = ColumnWriter()
    digests = index.digests
    pieces_of = None if digests is None else columns.add(digests.table)
    few = len(index.tracks) + len(index.findings) <= FEW
    # A text in one call is made in a third of the time.
    listed: Listed = list if few else iter
    plain = {
        "source": to_plain(index.file),
        "how": to_plain(index.how),
        "complete": index.complete,
        "resume_offset": index.resume_offset,
        "findings": listed(map(to_plain, index.findings)),
        "periods": listed(_plain_period(one, samples, columns, listed) for one in index.periods),
    }
    if digests is not None:
        root = digests.root.hex()
        plain[DIGESTS] = {"algorithm": ALGORITHM, "root": root, "pieces": pieces_of}
    head = begin_head(plain)  # by then, all columns have their places
    yield memoryview(finish_head(head, columns.size, least_version(plain))[0])
    yield from columns.pieces()


FEW: Final = 64
"""Tracks and findings whose JSON text is made in one call; more stand in memory one by one."""
Listed: TypeAlias = Callable[[Iterable[Any]], Iterable[Any]]


def _plain_period(
    period: Period, samples: bool, columns: ColumnWriter, listed: Listed
) -> dict[str, Any]:
    known = {info: number for number, info in enumerate(period.movie.tracks)}
    movie = to_plain(replace(period.movie, tracks=()))
    return {
        "number": period.number,
        "init": [[part.start, part.stop] for part in period.init],
        "movie": movie | {"tracks": listed(map(to_plain, period.movie.tracks))},
        "tracks": listed(_plain_track(track, known, samples, columns) for track in period.tracks),
    }


def _plain_track(
    track: Track, known: Mapping[TrackInfo, int], samples: bool, columns: ColumnWriter
) -> dict[str, Any]:
    tables = [columns.add(track.fragments), columns.add(track.sync_samples)]
    names = ["fragments", "sync"]
    if samples:
        names.append("samples")
        tables.append(columns.add(track.samples))
    if track.groups:
        names.append("groups")
        tables.append(columns.add(GroupTable.of_groups(track.groups)))
    number = known.get(track.info)
    return {
        # A track of the moov is named by its number there, another one is spelled out.
        "info": to_plain(track.info) if number is None else number,
        "shift": list(track.shift.as_integer_ratio()),
        "exact": track.exact,
        "tables": dict(zip(names, tables, strict=True)),
    }


# ---- reading


def open_index(
    what: SourceLike,
    *,
    media: SourceLike | None = None,
    ignore_mtime: bool = False,
    follow: bool = False,
) -> Index:
    """Open a binary index: one mmap for a file, no copy, whatever its size.

    Args:
        what: a path, bytes, or anything else that `open_source` takes; a remote file is read
            whole.
        media: the path of the file that the index describes, or that file as an open `Source`: its
            size, modification time and ETag are compared, if both are known, without reading it.
            An index of an incomplete file may have grown. What the index does not hold is read
            there. None: nothing is compared, and the media are where the index says.
        ignore_mtime: do not compare the modification time.
        follow: let the index name any file or URL as its media. Else only what lies below its own
            folder, or at the origin of its URL, is opened by that name, so that an index from a
            stranger leads nowhere; one that this process has written may name anything. Another
            name is a `ForeignName`: the media can be given wherever they are needed.

    The arrays of the index are read-only views of the file. It must not be changed in place while
    they are used; `save` never does, it puts a new file in its place. Those of a track are made
    when first used, and raise `DamagedIndex` then where the JSON
    part describes columns that the file does not have.

    Raises:
        DamagedIndex: this is not a binary index, of a newer major version, cut off, or damaged.
        SourceError: it cannot be read.
        SourceChanged: `media` is not the file that was indexed, or has changed since.

    >>> open_index(write(Index(FileInfo("a.mp4"), How("sidx", False), ()))).how.method
    'sidx'
    """
    named = None if follow else partial(name_in_file, file=_name_of(what))
    index = _read(_content(what), named=named)[0]
    if media is not None:
        refuse_other_media(index, media, ignore_mtime=ignore_mtime)
        return index.with_media(media)
    return index


def refuse_other_media(index: Index, media: SourceLike, *, ignore_mtime: bool = False) -> None:
    """Compare an index with the media file that it should describe, as `open_index` does.

    Raises:
        SourceChanged: it is not the file that was indexed, or has changed since.
        SourceNotFound: it is not there.
    """
    source = open_source(media)
    try:
        if not index.complete and (source.size or 0) >= (index.file.size or 0):
            return
        mtime = None if ignore_mtime else source.mtime_ns
        index.file.refuse_other(source.name, size=source.size, etag=source.etag, mtime_ns=mtime)
    finally:
        if source is not media:
            source.close()


def read(data: bytes | bytearray | memoryview) -> Index:
    """The index in these bytes, which it continues to use: they must not change.

    Raises:
        DamagedIndex: as `open_index`.
    """
    return _read(data)[0]


def verify(
    what: SourceLike | Index,
) -> None:
    """Test all that opening leaves untested: the checksums of the columns, and what lies between.

    Also that rows refer to rows that exist, and that sync samples are in order, so that an index
    from a stranger can be used without fear. Of an index that is open already this is tested alone:
    it has no checksums.

    Raises:
        DamagedIndex: something is wrong; the first problem is reported.
        SourceError: it cannot be read.
    """
    if isinstance(what, Index):
        _check_all(what)
        return
    data = memoryview(_content(what)).cast("B")
    index, columns, text_end, start = _read(data, verifying=True)
    gaps = [(text_end, start)] if columns.is_explained else []
    end = start
    for column in sorted(columns.placed, key=lambda placed: placed.offset):
        if zlib.crc32(column.array.data) != column.checksum:
            raise DamagedIndex(
                "a column is damaged",
                path=column.pointer,
                offset=start + column.offset,
                expected=f"CRC-32 {column.checksum:08x}",
                found=f"{zlib.crc32(column.array.data):08x}",
                advice="build the index again",
            )
        if column.array.nbytes and columns.is_explained:
            gaps.append((end, start + column.offset))
            end = max(end, start + column.offset + column.array.nbytes)
    if columns.is_explained:
        gaps.append((end, len(data)))
    for gap_start, gap_stop in gaps:
        if any(data[gap_start:gap_stop]):
            raise DamagedIndex("the padding between the columns is not zero", offset=gap_start)
    _check_all(index)


def _check_all(index: Index) -> None:
    if index.digests is not None:
        index.digests.check_root()
    for number, track in enumerate(index.tracks):
        pointer = f"/tracks/{number}"
        samples = track.samples if track.samples_ready else None
        rows = None if samples is None else len(samples)
        check_tables(track.id, track.fragments, track.sync_samples, track.groups, rows, pointer)
        if samples is not None:
            check_samples(track.id, samples, pointer)


def _name_of(what: SourceLike) -> str | None:
    """Path or URL of an index, if it has one."""
    if isinstance(what, (str, os.PathLike)):
        name = os.fsdecode(what)
        if name[:7].lower() != "file://":
            return name
        from urllib.parse import urlsplit
        from urllib.request import url2pathname

        return url2pathname(urlsplit(name).path)
    return what.name if isinstance(what, Source) and what.name[:1] not in ("", "<") else None


def _content(what: SourceLike) -> memoryview:
    with open_source(what) as source:
        view = source.view()
        if view is not None:
            return view
        return memoryview(b"".join(source.pieces()))


def _read(
    data: bytes | bytearray | memoryview,
    *,
    verifying: bool = False,
    named: Callable[[str], str] | None = None,
) -> tuple[Index, ColumnReader, int, int]:
    view = memoryview(data).cast("B").toreadonly()
    plain, text_end, start = parse_head(view)
    columns = ColumnReader(view[start:], verifying=verifying)
    complete = truth(item(plain, "complete"), "/complete")
    source = from_plain(FileInfo, item(plain, "source"), "/source")
    index = Index(
        source if named is None else replace(source, name=named(source.name)),
        from_plain(How, item(plain, "how"), "/how"),
        [
            _read_period(period, number, columns, f"/periods/{number}")
            for number, period in enumerate(_list(plain, "periods"))
        ],
        findings=[
            from_plain(Finding, finding, f"/findings/{number}")
            for number, finding in enumerate(_list(plain, "findings"))
        ],
        complete=complete,
        resume_offset=integer(item(plain, "resume_offset"), "/resume_offset", 0),
        digests=_read_digests(plain, columns),
    )
    return index, columns, text_end, start


def _read_digests(plain: Any, columns: ColumnReader) -> PieceDigests | None:
    """The digests of pieces; None where there are none, or by an algorithm of a later version."""
    if DIGESTS not in plain:
        return None
    pointer = f"/{DIGESTS}"
    if item(plain[DIGESTS], "algorithm", pointer) != ALGORITHM:
        return None
    root = item(plain[DIGESTS], "root", pointer)
    if not isinstance(root, str):
        raise refuse(f"{pointer}/root", "64 hex digits", root)
    pointer += "/pieces"
    places = columns.locate(PieceTable, item(plain[DIGESTS], "pieces", f"/{DIGESTS}"), pointer)
    return PieceDigests.deferred(_SavedPieces(columns, places, pointer), root)


class _SavedPieces:
    """The pieces of a saved index, checked on first use."""

    __slots__ = ("_columns", "_places", "_pointer")

    def __init__(self, columns: ColumnReader, places: TablePlaces, pointer: str) -> None:
        self._columns, self._places, self._pointer = columns, places, pointer

    def __call__(self) -> PieceTable:
        table = self._columns.table(PieceTable, self._places)
        start, size = table.start, table.size
        if len(table) and not (
            size.min() > 0
            and size.max() <= MOST_BYTES
            and start[0] == 0
            and start.max() < FAR
            and (start[1:] == start[:-1] + size[:-1]).all()
        ):
            raise refuse(self._pointer, f"pieces of 1 to {MOST_BYTES} bytes without gaps", "others")
        return table


def _list(plain: Any, key: str, pointer: str = "") -> list[Any]:
    value = item(plain, key, pointer)
    if not isinstance(value, list):
        raise refuse(f"{pointer}/{key}", "a list", value)
    return value


def _read_period(plain: Any, number: int, columns: ColumnReader, pointer: str) -> Period:
    movie = from_plain(Movie, item(plain, "movie", pointer), f"{pointer}/movie")
    integer(item(plain, "number", pointer), f"{pointer}/number", number, number)
    init = []
    for place, part in enumerate(_list(plain, "init", pointer)):
        try:
            init.append(ByteRange(*(integer(position) for position in part)))
        except (TypeError, DamagedIndex, InvalidRange):
            raise refuse(f"{pointer}/init/{place}", "[start, stop]", part) from None
    tracks = tuple(
        _read_track(track, movie, number, columns, f"{pointer}/tracks/{place}")
        for place, track in enumerate(_list(plain, "tracks", pointer))
    )
    return Period(number, tuple(init), movie, tracks)


def _read_track(
    plain: Any, movie: Movie, period: int, columns: ColumnReader, pointer: str
) -> Track:
    info = item(plain, "info", pointer)
    if isinstance(info, dict):
        info = from_plain(TrackInfo, info, f"{pointer}/info")
    else:
        info = movie.tracks[integer(info, f"{pointer}/info", 0, len(movie.tracks) - 1)]
    exact = truth(item(plain, "exact", pointer), f"{pointer}/exact")
    return Track.deferred(
        info,
        SavedTables(item(plain, "tables", pointer), info.id, columns, f"{pointer}/tables"),
        shift=_shift(item(plain, "shift", pointer), f"{pointer}/shift"),
        period=period,
        exact=exact,
        movie_timescale=movie.timescale,
    )


class SavedTables:
    """The tables of one track: their places were checked at opening, their numbers are not yet."""

    __slots__ = ("_columns", "_places", "_pointer", "_track")

    def __init__(self, plain: Any, track: int, columns: ColumnReader, pointer: str) -> None:
        self._columns, self._pointer, self._track = columns, pointer, track
        self._places = {
            kind: columns.locate(kind, item(plain, name, pointer), f"{pointer}/{name}")
            for name, kind, needed in _TABLES
            if needed or name in plain
        }
        if plain.keys() - _NAMES:
            columns.is_explained = False

    def unchecked(self) -> tuple[FragmentTable, SyncTable]:
        return self._table(FragmentTable), self._table(SyncTable)

    def checked(self) -> TrackTables:
        fragments, sync = self.unchecked()
        samples = self._table(SampleTable) if SampleTable in self._places else None
        groups = self._table(GroupTable).groups() if GroupTable in self._places else ()
        rows = None if samples is None else len(samples)
        check_tables(self._track, fragments, sync, groups, rows, self._pointer)
        return TrackTables(fragments, sync, groups, samples)

    def check_samples(self, samples: SampleTable) -> None:
        check_samples(self._track, samples, self._pointer)

    def _table(self, kind: type[AnyTable]) -> AnyTable:
        return self._columns.table(kind, self._places[kind])


_TABLES: tuple[tuple[str, type[Table], bool], ...] = (
    (FragmentTable.SCHEMA_NAME, FragmentTable, True),
    (SyncTable.SCHEMA_NAME, SyncTable, True),
    (GroupTable.SCHEMA_NAME, GroupTable, False),
    (SampleTable.SCHEMA_NAME, SampleTable, False),
)


_NAMES = {name for name, _, _ in _TABLES}
_NO_SHIFT = Fraction(0)


def _shift(plain: Any, pointer: str) -> Fraction:
    if not isinstance(plain, list) or len(plain) != 2:
        raise refuse(pointer, "[numerator, denominator]", plain)
    # A delay is counted in ticks of the movie, whose timescale has 32 bits.
    numerator = integer(plain[0], f"{pointer}/0", -(2**94), 2**94)
    denominator = integer(plain[1], f"{pointer}/1", 1, 2**32 - 1)
    if not -FAR * denominator < numerator < FAR * denominator:
        raise refuse(pointer, "a shift of less than 2^62 ticks", plain)
    return Fraction(numerator, denominator) if numerator else _NO_SHIFT
