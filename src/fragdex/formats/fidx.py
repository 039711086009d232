"""The binary index: a header, a JSON part for what is small, then the columns; opened by one mmap.

docs/index-format.md gives the form to the byte. The header and the JSON part stand under one
CRC-32 that is tested at opening; each column has its own, which `verify` tests, so that opening
reads no column and copies nothing.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.byterange import ByteRange
from fragdex.errors import DamagedIndex, InvalidRange
from fragdex.formats.fidx_columns import AnyTable, ColumnReader, ColumnWriter, GroupTable
from fragdex.formats.fidx_head import MAGIC, VERSION, build_head, parse_head
from fragdex.formats.records import from_plain, integer, item, refuse, to_plain
from fragdex.fragments.findings import Finding
from fragdex.fragments.table import NULL, FragmentTable, SampleTable, SyncTable
from fragdex.fragments.tracks import Movie, TrackInfo
from fragdex.seeking.model import FragmentIndex, How, Period, SourceInfo, TrackIndex
from fragdex.seeking.track import TrackTables
from fragdex.sources import Source, open_source
from fragdex.sources.writing import write_file

Int64 = npt.NDArray[np.int64]

__all__ = ["MAGIC", "VERSION", "open_index", "pieces", "read", "save", "verify", "write"]

# ---- writing


def write(index: FragmentIndex, *, samples: bool = False) -> bytes:
    """The binary index as bytes.

    Args:
        samples: put the sample tables in as well.

    Raises:
        InexactIndex: samples are asked for that the index does not hold.

    >>> empty = FragmentIndex(SourceInfo("a.mp4"), How("boxes", True), ())
    >>> read(write(empty)).source.name
    'a.mp4'
    """
    return b"".join(pieces(index, samples=samples))


def save(index: FragmentIndex, path: str | PathLike[str], *, samples: bool = False) -> None:
    """Write the binary index to a file: atomically, never half of one.

    Args:
        path: where to; an older file there is replaced at the very end and keeps its mode bits.
        samples: put the sample tables in as well.

    Raises:
        InexactIndex: samples are asked for that the index does not hold.
        OSError: the file cannot be written.
    """
    write_file(path, pieces(index, samples=samples))


def pieces(index: FragmentIndex, *, samples: bool = False) -> Iterator[bytes | memoryview]:
    """`write` piece by piece: columns are handed on as they lie in memory.

    >>> empty = FragmentIndex(SourceInfo(), How("boxes", True), ())
    >>> len(next(pieces(empty))) % 64
    0
    """
    columns = ColumnWriter()
    plain = {
        "source": to_plain(index.source),
        "how": to_plain(index.how),
        "complete": index.complete,
        "resume_offset": index.resume_offset,
        "findings": to_plain(index.findings),
        "periods": [_plain_period(period, samples, columns) for period in index.periods],
    }
    yield build_head(plain, columns.size)[0]
    yield from columns.pieces()


def _plain_period(period: Period, samples: bool, columns: ColumnWriter) -> dict[str, Any]:
    known = {info: number for number, info in enumerate(period.movie.tracks)}
    tracks = []
    for track in period.tracks:
        tables = [columns.add(track.fragments), columns.add(track.sync)]
        names = ["fragments", "sync"]
        if samples:
            names.append("samples")
            tables.append(columns.add(track.samples))
        if track.groups:
            names.append("groups")
            tables.append(columns.add(GroupTable.of_groups(track.groups)))
        tracks.append(
            {
                # A track of the moov is told by its number there, another one is spelled out.
                "info": known.get(track.info, to_plain(track.info)),
                "shift": list(track.shift.as_integer_ratio()),
                "exact": track.exact,
                "tables": dict(zip(names, tables, strict=True)),
            }
        )
    return {
        "number": period.number,
        "init": [[part.start, part.stop] for part in period.init],
        "movie": to_plain(period.movie),
        "tracks": tracks,
    }


# ---- reading


def open_index(
    what: str | PathLike[str] | bytes | bytearray | memoryview | Source,
) -> FragmentIndex:
    """Open a binary index: one mmap for a file, no copy, whatever its size.

    Args:
        what: a path, bytes, or anything else that `open_source` takes; what is not local is read
            whole.

    The arrays of the index are read-only views of the file. It must not be changed in place while
    they are used; `save` never does, it puts a new file in its place. Those of a track are taken
    out of the file when they are first asked for, and raise `DamagedIndex` then where the JSON
    part describes columns that the file does not have.

    Raises:
        DamagedIndex: this is no binary index, of a newer major version, cut off, or damaged.
        SourceError: it cannot be read.

    >>> open_index(write(FragmentIndex(SourceInfo("a.mp4"), How("sidx", False), ()))).how.method
    'sidx'
    """
    return read(_content(what))


def read(data: bytes | bytearray | memoryview) -> FragmentIndex:
    """The index in these bytes, which it goes on using: they must not change.

    Raises:
        DamagedIndex: as `open_index`.
    """
    return _read(data)[0]


def verify(
    what: str | PathLike[str] | bytes | bytearray | memoryview | Source | FragmentIndex,
) -> None:
    """Test all that opening leaves untested: the checksums of the columns, and what lies between.

    Also that rows refer to rows that exist, and that sync samples are in order, so that an index
    from a stranger can be used without fear. Of an index that is open already this is tested alone:
    it has no checksums.

    Raises:
        DamagedIndex: something is wrong; the first thing found is told.
        SourceError: it cannot be read.

    >>> verify(write(FragmentIndex(SourceInfo(), How("sidx", False), ())))
    """
    if isinstance(what, FragmentIndex):
        _all_coherent(what)
        return
    data = memoryview(_content(what)).cast("B")
    index, columns, text_end, start = _read(data)
    for track in index.tracks:
        _ = track.fragments  # its columns are known when they have been asked for
    gaps = [(text_end, start)]
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
        if column.array.dtype == np.bool_ and (column.array.view(np.uint8) > 1).any():
            raise refuse(column.pointer, "bytes 0 and 1", "others")
        if column.array.nbytes:
            gaps.append((end, start + column.offset))
            end = max(end, start + column.offset + column.array.nbytes)
    gaps.append((end, len(data)))
    for gap_start, gap_stop in gaps:
        if any(data[gap_start:gap_stop]):
            raise DamagedIndex("what fills up between the columns is not zero", offset=gap_start)
    _all_coherent(index)


def _content(what: Any) -> memoryview:
    with open_source(what) as source:
        view = source.view()
        if view is not None:
            return view
        return memoryview(b"".join(source.pieces()))


def _read(data: bytes | bytearray | memoryview) -> tuple[FragmentIndex, ColumnReader, int, int]:
    view = memoryview(data).cast("B").toreadonly()
    plain, text_end, start = parse_head(view)
    columns = ColumnReader(view[start:])
    complete = item(plain, "complete")
    if not isinstance(complete, bool):
        raise refuse("/complete", "true or false", complete)
    index = FragmentIndex(
        from_plain(SourceInfo, item(plain, "source"), "/source"),
        from_plain(How, item(plain, "how"), "/how"),
        [
            _read_period(period, columns, f"/periods/{number}")
            for number, period in enumerate(_list(plain, "periods"))
        ],
        findings=[
            from_plain(Finding, finding, f"/findings/{number}")
            for number, finding in enumerate(_list(plain, "findings"))
        ],
        complete=complete,
        resume_offset=integer(item(plain, "resume_offset"), "/resume_offset", 0),
    )
    return index, columns, text_end, start


def _list(plain: Any, key: str, pointer: str = "") -> list[Any]:
    value = item(plain, key, pointer)
    if not isinstance(value, list):
        raise refuse(f"{pointer}/{key}", "a list", value)
    return value


def _read_period(plain: Any, columns: ColumnReader, pointer: str) -> Period:
    movie = from_plain(Movie, item(plain, "movie", pointer), f"{pointer}/movie")
    number = integer(item(plain, "number", pointer), f"{pointer}/number", 0)
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
) -> TrackIndex:
    info = item(plain, "info", pointer)
    if isinstance(info, dict):
        info = from_plain(TrackInfo, info, f"{pointer}/info")
    else:
        info = movie.tracks[integer(info, f"{pointer}/info", 0, len(movie.tracks) - 1)]
    exact = item(plain, "exact", pointer)
    if not isinstance(exact, bool):
        raise refuse(f"{pointer}/exact", "true or false", exact)
    return TrackIndex.deferred(
        info,
        partial(_read_tables, item(plain, "tables", pointer), columns, f"{pointer}/tables"),
        shift=_shift(item(plain, "shift", pointer), f"{pointer}/shift"),
        period=period,
        exact=exact,
    )


def _read_tables(plain: Any, columns: ColumnReader, pointer: str) -> TrackTables:
    def read(kind: type[AnyTable]) -> AnyTable:
        name = kind.SCHEMA_NAME
        return columns.table(kind, item(plain, name, pointer), f"{pointer}/{name}")

    return TrackTables(
        read(FragmentTable),
        read(SyncTable),
        read(GroupTable).groups() if "groups" in plain else (),
        read(SampleTable) if "samples" in plain else None,
    )


def _shift(plain: Any, pointer: str) -> Fraction:
    if not isinstance(plain, list) or len(plain) != 2:
        raise refuse(pointer, "[numerator, denominator]", plain)
    # A product of two 64-bit fields over a 32-bit one: more than an int64 holds.
    return Fraction(
        integer(plain[0], f"{pointer}/0", -(2**127), 2**127),
        integer(plain[1], f"{pointer}/1", 1, 2**127),
    )


def _all_coherent(index: FragmentIndex) -> None:
    for number, track in enumerate(index.tracks):
        _coherent(track, f"/tracks/{number}")


def _coherent(track: TrackIndex, pointer: str) -> None:
    fragments, sync = track.fragments, track.sync
    rules = {
        "bytes count from 0": not ((fragments.offset < 0) | (fragments.size < 0)).any(),
        "sync samples stand in rows of the fragment table": not (
            (sync.fragment < 0) | (sync.fragment >= len(fragments))
        ).any(),
        "each run has a sync sample": not (sync.count < 1).any(),
        "runs are in order of time": not (sync.cts[1:] < sync.cts[:-1]).any(),
        "steps lead forward": not ((sync.step < 0) | (sync.sample_step < 0)).any(),
        "times fit into 64 bits": _fit(sync.cts, sync.step, sync.count)
        and _fit(sync.dts, sync.step, sync.count),
        "sample numbers fit into 64 bits": _fit(sync.sample, sync.sample_step, sync.count),
        "runs of several sync samples say which samples they are": _numbered(track),
        "sample numbers count the samples before": _counted(track),
        "sync samples are samples of their fragments": _contained(track),
    }
    for rule, holds in rules.items():
        if not holds:
            raise DamagedIndex(
                f"the tables of track {track.id} contradict this: {rule}", path=pointer
            )


def _fit(first: Int64, step: Int64, count: Int64) -> bool:
    """Whether the last of each run is a number that an int64 holds, with room to spare."""
    last = np.where(first == NULL, 0, first) + step.astype(np.float64) * (count - 1)
    return bool((np.abs(last) < 2.0**63 - 2.0**12).all())


def _numbered(track: TrackIndex) -> bool:
    several = track.sync.rows(track.sync.count > 1)
    known = not (track.fragments.sample_start == NULL).any()
    return not len(several) or (
        known and not ((several.sample == NULL) | (several.sample_step < 1)).any()
    )


def _contained(track: TrackIndex) -> bool:
    fragments, sync = track.fragments, track.sync
    if ((sync.fragment < 0) | (sync.fragment >= len(fragments))).any():
        return False
    first, count = fragments.sample_start[sync.fragment], fragments.sample_count[sync.fragment]
    known = (sync.sample != NULL) & (first != NULL)
    within = sync.sample - first
    return not (known & ((within < 0) | (within >= count))).any()


def _counted(track: TrackIndex) -> bool:
    starts, counts = track.fragments.sample_start, track.fragments.sample_count
    if (starts == NULL).any() or (counts == NULL).any():
        return not track.has_samples
    if (counts < 0).any() or not np.array_equal(starts, np.cumsum(counts) - counts):
        return False
    return not track.has_samples or int(counts.sum()) == len(track.samples)
